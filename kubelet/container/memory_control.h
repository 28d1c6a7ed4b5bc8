// What a container is told of memory beyond its limit: when it is slowed down, what is kept for it, how much
// of it may go to swap. All by cgroup v2, but for a ban on swap.
#pragma once

#include "kubelet/container/node_context.h"
#include "kubelet/cri/types.h"
#include "lib/api/types.h"

namespace keelson::kubelet {

// memory.high of a container that may use more than it has asked for (KEP-2570): its request and the given
// part of what lies between that and its limit, or else what pods may have; whole pages. 0: none.
int64_t MemoryHigh(int64_t request, int64_t limit, int64_t allocatable, double factor);

// Needs memory_limit_bytes to be set already.
void AddMemoryControl(const corev1::Pod& pod, const corev1::Container& container, const NodeContext& node,
                      cri::LinuxResources& out);

}  // namespace keelson::kubelet
