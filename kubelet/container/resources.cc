#include "kubelet/container/resources.h"

#include <algorithm>

#include "kubelet/container/memory_control.h"
#include "lib/k8s/pods/pod_resources.h"
#include "lib/k8s/pods/pod_util.h"
#include "lib/k8s/pods/qos.h"

namespace keelson::kubelet {

namespace {

int64_t MilliOf(const k8s::QuantityMap& amounts) {
  auto it = amounts.find("cpu");
  return it == amounts.end() ? 0 : api::Amount::Of(it->second).MilliValue();
}

int64_t MemoryOf(const k8s::QuantityMap& amounts) {
  auto it = amounts.find("memory");
  return it == amounts.end() ? 0 : api::Amount::Of(it->second).Value();
}

// hugepages-2Mi -> 2MB, as the kernel spells it.
std::map<std::string, int64_t> HugePages(const k8s::QuantityMap& amounts) {
  std::map<std::string, int64_t> out;
  for (const auto& [name, quantity] : amounts) {
    if (!k8s::IsHugePages(name)) continue;
    auto size = api::Amount::Parse(name.substr(sizeof("hugepages-") - 1));
    if (!size || size->IsZero()) continue;
    out[HugePageSizeName(size->Value())] = api::Amount::Of(quantity).Value();
  }
  return out;
}

// As the CPU manager decides: whole CPUs, in a Guaranteed pod.
bool HasOwnCpus(const corev1::Pod& pod, const corev1::Container& container, const NodeContext& node) {
  const int64_t milli = MilliOf(container.resources().requests());
  return node.exclusive_cpus && milli > 0 && milli % 1000 == 0 && k8s::QosClass(pod) == k8s::kGuaranteed;
}

// Memory that is kept for the pod (KEP-2570).
void AddReservation(const corev1::Pod& pod, int64_t request, const NodeContext& node,
                    linux::CgroupLimits& out) {
  if (!node.memory_qos.on || !node.cgroup_v2) return;
  const std::string_view qos = k8s::QosClass(pod);
  out.memory_min_bytes = node.memory_qos.tiered && qos == k8s::kGuaranteed ? request : 0;
  out.memory_low_bytes = node.memory_qos.tiered && qos == k8s::kBurstable ? request : 0;
}

}  // namespace

uint64_t MilliCpuToShares(int64_t milli) {
  return static_cast<uint64_t>(std::clamp<int64_t>(milli * 1024 / 1000, 2, 262144));
}

std::string HugePageSizeName(int64_t bytes) {
  int unit = 0;  // from KB on
  for (bytes >>= 10; bytes >= 1024 && unit < 2; bytes >>= 10) ++unit;
  return std::to_string(bytes) + "KMG"[unit] + "B";
}

int64_t MilliCpuToQuota(int64_t milli, int64_t period_us) {
  if (milli <= 0) return 0;
  return std::max<int64_t>(milli * period_us / 1000, 1000);
}

cri::LinuxResources ContainerResources(const corev1::Pod& pod, const corev1::Container& container,
                                       const NodeContext& node) {
  cri::LinuxResources out;
  const corev1::ResourceRequirements& resources = container.resources();
  // Containers without a limit of their own may use what the pod as a whole may.
  const k8s::QuantityMap& of_pod = pod.spec().resources().limits();
  const int64_t milli = MilliOf(resources.limits()) ? MilliOf(resources.limits()) : MilliOf(of_pod);
  const bool requests = resources.requests().count("cpu") > 0;  // else the limit counts as one
  out.cpu_shares = static_cast<int64_t>(MilliCpuToShares(requests ? MilliOf(resources.requests()) : milli));
  if (node.cpu_cfs_quota) {
    out.cpu_quota = HasOwnCpus(pod, container, node) ? -1 : MilliCpuToQuota(milli, node.cpu_cfs_period_us);
    if (out.cpu_quota) out.cpu_period = node.cpu_cfs_period_us;
  }
  out.memory_limit_bytes = MemoryOf(resources.limits()) ? MemoryOf(resources.limits()) : MemoryOf(of_pod);
  out.oom_score_adj = OomScoreAdjust(pod, container, node.memory_capacity);
  for (const std::string& size : node.huge_page_sizes) out.hugepage_limits[size] = 0;
  for (const auto* limits : {&of_pod, &resources.limits()}) {
    for (const auto& [size, bytes] : HugePages(*limits)) {
      out.hugepage_limits[size] = static_cast<uint64_t>(bytes);
    }
  }
  AddMemoryControl(pod, container, node, out);
  return out;
}

cri::LinuxResources OverheadResources(const corev1::PodSpec& spec, const NodeContext& node) {
  cri::LinuxResources out;
  if (int64_t milli = MilliOf(spec.overhead()); milli > 0) {
    out.cpu_shares = static_cast<int64_t>(MilliCpuToShares(milli));
    if (node.cpu_cfs_quota) {
      out.cpu_period = node.cpu_cfs_period_us;
      out.cpu_quota = MilliCpuToQuota(milli, node.cpu_cfs_period_us);
    }
  }
  out.memory_limit_bytes = MemoryOf(spec.overhead());
  return out;
}

linux::CgroupLimits PodCgroupLimits(const corev1::Pod& pod, const NodeContext& node, int64_t pids_max) {
  linux::CgroupLimits out;
  k8s::ResourceList requests = k8s::PodRequests(pod), limits = k8s::PodLimits(pod);
  bool cpu_limited = true, memory_limited = true, own_cpus = false;
  k8s::ForEachContainer(pod.spec(), [&](const corev1::Container& container) {
    cpu_limited = cpu_limited && MilliOf(container.resources().limits()) > 0;
    memory_limited = memory_limited && MemoryOf(container.resources().limits()) > 0;
    own_cpus = own_cpus || HasOwnCpus(pod, container, node);
  });
  if (pod.spec().has_resources()) {
    cpu_limited = cpu_limited || MilliOf(pod.spec().resources().limits()) > 0;
    memory_limited = memory_limited || MemoryOf(pod.spec().resources().limits()) > 0;
  }
  int64_t milli = k8s::AmountOf(requests, "cpu").MilliValue();
  if (milli == 0 && cpu_limited) milli = k8s::AmountOf(limits, "cpu").MilliValue();
  out.cpu_shares = k8s::QosClass(pod) == k8s::kBestEffort ? 2 : MilliCpuToShares(milli);
  out.cpu_period_us = static_cast<uint64_t>(node.cpu_cfs_period_us);
  out.cpu_quota_us = -1;
  if (cpu_limited && node.cpu_cfs_quota && !own_cpus) {
    out.cpu_quota_us = MilliCpuToQuota(k8s::AmountOf(limits, "cpu").MilliValue(), node.cpu_cfs_period_us);
  }
  out.memory_limit_bytes = memory_limited ? k8s::AmountOf(limits, "memory").Value() : -1;
  for (const std::string& size : node.huge_page_sizes) out.huge_pages[size] = 0;
  k8s::QuantityMap amounts;
  k8s::FromResourceList(limits, amounts);
  for (const auto& [size, bytes] : HugePages(amounts)) out.huge_pages[size] = bytes;
  AddReservation(pod, k8s::AmountOf(requests, "memory").Value(), node, out);
  if (pids_max > 0) out.pids_max = pids_max;
  return out;
}

}  // namespace keelson::kubelet
