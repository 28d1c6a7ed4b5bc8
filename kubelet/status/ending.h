// The status of a pod that does not end by itself. Pure.
#pragma once

#include <string>

#include "lib/api/types.h"
#include "lib/base/clock.h"

namespace keelson::kubelet {

// Of a pod that the node does not take: phase Failed with this reason and message.
corev1::PodStatus RejectedStatus(const corev1::Pod& pod, const std::string& reason,
                                 const std::string& message, WallTime now);

// Why the node itself ended a pod.
struct PodEnding {
  std::string reason, message;
  std::string disruption;  // message of the DisruptionTarget condition; empty: none
};
// Phase Failed for that reason, whatever the containers' ends say.
void ApplyEnding(const PodEnding& ending, WallTime now, corev1::PodStatus& status);

}  // namespace keelson::kubelet
