// Which conditions of a pod are the kubelet's to write. All others are their writers' own: the kubelet reads
// them as the API has them, for readiness gates, and never writes them.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

#include "lib/k8s/pods/pod_util.h"

namespace keelson::kubelet {

// DisruptionTarget is not among them: it is written when the kubelet itself ends a pod, and otherwise
// another's.
inline bool IsKubeletsCondition(std::string_view type) {
  static constexpr std::array<std::string_view, 8> kTypes = {
      k8s::kPodScheduled, k8s::kPodReadyToStartContainers, k8s::kPodInitialized, k8s::kContainersReady,
      k8s::kPodReady,     "AllContainersRestarting",       "PodResizePending",   "PodResizeInProgress",
  };
  return std::find(kTypes.begin(), kTypes.end(), type) != kTypes.end();
}

}  // namespace keelson::kubelet
