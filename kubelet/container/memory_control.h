// Memory settings besides the limit: memory.high, memory.min, memory.low and swap. They need cgroup v2, except
// that swap can also be forbidden on v1.
#pragma once

#include "kubelet/container/node_context.h"
#include "kubelet/cri/types.h"
#include "lib/api/types.h"

namespace keelson::kubelet {

// memory.high of a container (KEP-2570): its request plus `factor` of the difference to its limit, or without limit
// to `allocatable`; a multiple of the page size. 0: not set.
int64_t MemoryHigh(int64_t request, int64_t limit, int64_t allocatable, double factor);

// Call after out.memory_limit_bytes is set.
void AddMemoryControl(const corev1::Pod& pod, const corev1::Container& container, const NodeContext& node,
                      cri::LinuxResources& out);

}  // namespace keelson::kubelet
