// In which order pods terminate when the node shuts down, and how much time each has. Pure.
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "kubelet/config/config.h"
#include "lib/api/types.h"

namespace keelson::kubelet {

// The configured periods by ascending priority; empty: graceful shutdown is off. shutdownGracePeriod and
// shutdownGracePeriodCriticalPods become two periods: other pods, and critical pods.
std::vector<ShutdownPeriod> ShutdownPeriods(const KubeletConfig& config);

struct ShutdownGroup {
  std::chrono::seconds period{0};
  std::vector<std::shared_ptr<const corev1::Pod>> pods;
};
// One group per period; they terminate one after another. A pod is in the group with the highest priority that is
// not above its own, or in the first.
std::vector<ShutdownGroup> GroupByPriority(const std::vector<ShutdownPeriod>& periods,
                                           const std::vector<std::shared_ptr<const corev1::Pod>>& pods);

std::chrono::seconds TotalOf(const std::vector<ShutdownPeriod>& periods);
// The group's period, or the pod's own grace period if that is shorter.
std::chrono::seconds GraceIn(const ShutdownGroup& group, const corev1::Pod& pod);

}  // namespace keelson::kubelet
