#include "kubelet/container/memory_control.h"

#include <unistd.h>

#include "kubelet/container/critical.h"
#include "lib/k8s/pods/qos.h"

namespace keelson::kubelet {

namespace {

int64_t MemoryOf(const k8s::QuantityMap& amounts) {
  return k8s::AmountOf(k8s::ToResourceList(amounts), "memory").Value();
}

// KEP-2400: as large a part of the machine's swap as the request is of its memory, for those Burstable
// containers that may use more than they have asked for.
int64_t SwapOf(const corev1::Pod& pod, const corev1::Container& container, const NodeContext& node) {
  if (!node.limited_swap || !node.cgroup_v2 || node.memory_capacity <= 0) return 0;
  if (k8s::QosClass(pod) != k8s::kBurstable || IsCriticalPod(pod)) return 0;
  const int64_t request = MemoryOf(container.resources().requests());
  if (request == MemoryOf(container.resources().limits())) return 0;
  return static_cast<int64_t>(static_cast<double>(request) / static_cast<double>(node.memory_capacity) *
                              static_cast<double>(node.swap_capacity));
}

void AddSwap(const corev1::Pod& pod, const corev1::Container& container, const NodeContext& node,
             cri::LinuxResources& out) {
  if (!node.limits_swap) return;
  if (node.cgroup_v2) {
    out.unified["memory.swap.max"] = std::to_string(SwapOf(pod, container, node));
  } else {
    out.memory_swap_limit_bytes = out.memory_limit_bytes;
  }
}

void AddMemoryQos(const corev1::Pod& pod, const corev1::Container& container, const NodeContext& node,
                  cri::LinuxResources& out) {
  if (!node.memory_qos.on || !node.cgroup_v2) return;
  const std::string_view qos = k8s::QosClass(pod);
  const int64_t request = MemoryOf(container.resources().requests());
  if (node.memory_qos.tiered && request > 0) {
    if (qos == k8s::kGuaranteed) out.unified["memory.min"] = std::to_string(request);
    if (qos == k8s::kBurstable) out.unified["memory.low"] = std::to_string(request);
  }
  const int64_t limit = MemoryOf(container.resources().limits());
  if (request == limit) return;
  const int64_t high = MemoryHigh(request, limit, k8s::AmountOf(node.allocatable, "memory").Value(),
                                  node.memory_qos.throttling);
  if (high > 0) out.unified["memory.high"] = std::to_string(high);
}

}  // namespace

int64_t MemoryHigh(int64_t request, int64_t limit, int64_t allocatable, double factor) {
  const int64_t most = limit > 0 ? limit : allocatable;
  if (most <= 0) return 0;
  static const int64_t kPage = ::sysconf(_SC_PAGESIZE);
  const auto high =
      static_cast<int64_t>(static_cast<double>(request) + static_cast<double>(most - request) * factor);
  return high > request ? high / kPage * kPage : 0;
}

void AddMemoryControl(const corev1::Pod& pod, const corev1::Container& container, const NodeContext& node,
                      cri::LinuxResources& out) {
  // All processes of a container go together when it runs out of memory.
  if (node.cgroup_v2 && !node.single_process_oom_kill) out.unified["memory.oom.group"] = "1";
  AddSwap(pod, container, node, out);
  AddMemoryQos(pod, container, node, out);
}

}  // namespace keelson::kubelet
