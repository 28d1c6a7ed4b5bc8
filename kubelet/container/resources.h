// Converts requests and limits to cgroup settings.
#pragma once

#include <cstdint>

#include "kubelet/container/node_context.h"
#include "kubelet/cri/types.h"
#include "lib/api/types.h"
#include "lib/linux/cgroup.h"

namespace keelson::kubelet {

// 1000m -> 1024 shares; at least 2, at most 262144.
uint64_t MilliCpuToShares(int64_t milli);
// CFS quota in microseconds per period: at least 1000; 0 (no quota) for 0.
int64_t MilliCpuToQuota(int64_t milli, int64_t period_us);
// 2097152 -> 2MB, as cgroup files and CRI spell it.
std::string HugePageSizeName(int64_t bytes);
// -997 for guaranteed and node-critical pods, 1000 for best effort ones, between 3 and 999 for burstable
// ones: the smaller the requested share of the node's memory, the higher.
int OomScoreAdjust(const corev1::Pod& pod, const corev1::Container& container, int64_t memory_capacity);

cri::LinuxResources ContainerResources(const corev1::Pod& pod, const corev1::Container& container,
                                       const NodeContext& node);
// spec.overhead, which the pod's RuntimeClass has set.
cri::LinuxResources OverheadResources(const corev1::PodSpec& spec, const NodeContext& node);
// Limits of the pod's cgroup. CPU quota and memory are limited only if every container has a limit, or the pod.
linux::CgroupLimits PodCgroupLimits(const corev1::Pod& pod, const NodeContext& node, int64_t pids_max);

}  // namespace keelson::kubelet
