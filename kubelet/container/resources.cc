#include "kubelet/container/resources.h"

#include <algorithm>

#include "lib/k8s/pod_resources.h"
#include "lib/k8s/pod_util.h"
#include "lib/k8s/qos.h"

namespace keelson::kubelet {

namespace {

constexpr int kGuaranteedOomScore = -997;
constexpr int kBestEffortOomScore = 1000;
constexpr int32_t kSystemCriticalPriority = 2000000000;

int64_t MilliOf(const k8s::QuantityMap& amounts) {
  auto it = amounts.find("cpu");
  return it == amounts.end() ? 0 : api::Amount::Of(it->second).MilliValue();
}

int64_t MemoryOf(const k8s::QuantityMap& amounts) {
  auto it = amounts.find("memory");
  return it == amounts.end() ? 0 : api::Amount::Of(it->second).Value();
}

// Without a request the limit counts as one.
int64_t RequestedMilli(const corev1::ResourceRequirements& resources) {
  if (resources.requests().count("cpu")) return MilliOf(resources.requests());
  return MilliOf(resources.limits());
}

}  // namespace

uint64_t MilliCpuToShares(int64_t milli) {
  return static_cast<uint64_t>(std::clamp<int64_t>(milli * 1024 / 1000, 2, 262144));
}

int64_t MilliCpuToQuota(int64_t milli, int64_t period_us) {
  if (milli <= 0) return 0;
  return std::max<int64_t>(milli * period_us / 1000, 1000);
}

int OomScoreAdjust(const corev1::Pod& pod, const corev1::Container& container, int64_t memory_capacity) {
  if (k8s::Priority(pod.spec()) >= kSystemCriticalPriority) return kGuaranteedOomScore;
  std::string_view qos = k8s::QosClass(pod);
  if (qos == k8s::kGuaranteed) return kGuaranteedOomScore;
  if (qos == k8s::kBestEffort || memory_capacity <= 0) return kBestEffortOomScore;
  int64_t request = MemoryOf(container.resources().requests());
  int64_t score = 1000 - (1000 * request) / memory_capacity;
  return static_cast<int>(std::clamp<int64_t>(score, 1000 + kGuaranteedOomScore, kBestEffortOomScore - 1));
}

cri::LinuxResources ContainerResources(const corev1::Pod& pod, const corev1::Container& container,
                                       const NodeContext& node) {
  cri::LinuxResources out;
  out.cpu_shares = static_cast<int64_t>(MilliCpuToShares(RequestedMilli(container.resources())));
  if (node.cpu_cfs_quota) {
    out.cpu_quota = MilliCpuToQuota(MilliOf(container.resources().limits()), node.cpu_cfs_period_us);
    if (out.cpu_quota) out.cpu_period = node.cpu_cfs_period_us;
  }
  out.memory_limit_bytes = MemoryOf(container.resources().limits());
  out.oom_score_adj = OomScoreAdjust(pod, container, node.memory_capacity);
  for (const auto& [name, quantity] : container.resources().limits()) {
    if (!k8s::IsHugePages(name)) continue;
    api::Amount size = api::Amount::Parse(name.substr(sizeof("hugepages-") - 1)).value_or(api::Amount());
    if (size.IsZero()) continue;
    // The kernel spells page sizes 2MB and 1GB.
    int64_t megabytes = size.Value() >> 20;
    std::string page =
        megabytes >= 1024 ? std::to_string(megabytes >> 10) + "GB" : std::to_string(megabytes) + "MB";
    out.hugepage_limits[page] = static_cast<uint64_t>(api::Amount::Of(quantity).Value());
  }
  // All processes of a container go together when it runs out of memory.
  if (node.cgroup_v2) out.unified["memory.oom.group"] = "1";
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
  bool cpu_limited = true, memory_limited = true;
  k8s::ForEachContainer(pod.spec(), [&](const corev1::Container& container) {
    cpu_limited = cpu_limited && MilliOf(container.resources().limits()) > 0;
    memory_limited = memory_limited && MemoryOf(container.resources().limits()) > 0;
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
  if (cpu_limited && node.cpu_cfs_quota)
    out.cpu_quota_us = MilliCpuToQuota(k8s::AmountOf(limits, "cpu").MilliValue(), node.cpu_cfs_period_us);
  out.memory_limit_bytes = memory_limited ? k8s::AmountOf(limits, "memory").Value() : -1;
  if (pids_max > 0) out.pids_max = pids_max;
  return out;
}

}  // namespace keelson::kubelet
