// From requests and limits to what the kernel is told.
#pragma once

#include <cstdint>

#include "kubelet/container/node_context.h"
#include "kubelet/cri/types.h"
#include "lib/api/types.h"
#include "lib/linux/cgroup.h"

namespace keelson::kubelet {

// 1000m is 1024 shares; at least 2, at most 262144.
uint64_t MilliCpuToShares(int64_t milli);
// Microseconds of a period; 0 (no quota) for no limit, at least 1000.
int64_t MilliCpuToQuota(int64_t milli, int64_t period_us);
// 2097152 -> 2MB, as files of cgroups and the runtime spell it.
std::string HugePageSizeName(int64_t bytes);
// -997 for guaranteed and node-critical pods, 1000 for best effort ones, between 3 and 999 for burstable
// ones: the smaller the share of the node's memory that was asked for, the sooner the container goes.
int OomScoreAdjust(const corev1::Pod& pod, const corev1::Container& container, int64_t memory_capacity);

cri::LinuxResources ContainerResources(const corev1::Pod& pod, const corev1::Container& container,
                                       const NodeContext& node);
// What the pod's RuntimeClass has said the runtime itself takes.
cri::LinuxResources OverheadResources(const corev1::PodSpec& spec, const NodeContext& node);
// Limits of a pod's own cgroup. Quota and memory are limited only if every container is, or the pod itself.
linux::CgroupLimits PodCgroupLimits(const corev1::Pod& pod, const NodeContext& node, int64_t pids_max);

}  // namespace keelson::kubelet
