// The status of a pod that the node rejects or terminates. Pure.
#pragma once

#include <string>

#include "lib/api/types.h"
#include "lib/base/clock.h"

namespace keelson::kubelet {

// The status of a pod that admission rejects: phase Failed with this reason and message.
corev1::PodStatus RejectedStatus(const corev1::Pod& pod, const std::string& reason,
                                 const std::string& message, WallTime now);

// Why the node terminated a pod: eviction, preemption, node shutdown, deadline.
struct TerminationReason {
  std::string reason, message;
  std::string disruption_message;  // of the DisruptionTarget condition; empty: none is set
};
// Sets phase Failed, reason, message and DisruptionTarget, whatever the containers' exit codes say.
void ApplyTerminationReason(const TerminationReason& reason, WallTime now, corev1::PodStatus& status);

}  // namespace keelson::kubelet
