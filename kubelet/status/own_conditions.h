// Which pod conditions the kubelet owns. It reads all others, for readiness gates, and never writes them.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

#include "lib/k8s/pods/pod_util.h"

namespace keelson::kubelet {

// DisruptionTarget is not among them: the kubelet writes it only when it terminates the pod itself.
inline bool IsKubeletsCondition(std::string_view type) {
  static constexpr std::array<std::string_view, 8> kTypes = {
      k8s::kPodScheduled, k8s::kPodReadyToStartContainers, k8s::kPodInitialized, k8s::kContainersReady,
      k8s::kPodReady,     "AllContainersRestarting",       "PodResizePending",   "PodResizeInProgress",
  };
  return std::find(kTypes.begin(), kTypes.end(), type) != kTypes.end();
}

}  // namespace keelson::kubelet
