#include "kubelet/cm/cgroups/qos_cgroup_limits.h"

#include <charconv>

#include "kubelet/container/resources.h"
#include "lib/k8s/pods/qos.h"

namespace keelson::kubelet {

namespace {

struct Asked {
  int64_t burstable_milli = 0, guaranteed_memory = 0, burstable_memory = 0;
};

Asked AskedBy(const std::vector<std::shared_ptr<const corev1::Pod>>& pods) {
  Asked out;
  for (const auto& pod : pods) {
    const std::string_view qos = k8s::QosClass(*pod);
    if (qos == k8s::kBestEffort) continue;
    const k8s::ResourceList requests = k8s::PodRequests(*pod);
    const int64_t memory = k8s::AmountOf(requests, "memory").Value();
    if (qos == k8s::kGuaranteed) {
      out.guaranteed_memory += memory;
      continue;
    }
    out.burstable_memory += memory;
    out.burstable_milli += k8s::AmountOf(requests, "cpu").MilliValue();
  }
  return out;
}

Result<int> ParsePercentage(const std::string& text) {
  if (text.empty() || text.back() != '%') {
    return Error(Code::kInvalid, "percentage expected, got '" + text + "'");
  }
  int out = 0;
  const char* end = text.data() + text.size() - 1;
  auto [rest, failed] = std::from_chars(text.data(), end, out);
  if (failed != std::errc() || rest != end) {
    return Error(Code::kInvalid, "invalid number in percentage '" + text + "'");
  }
  if (out < 0 || out > 100) return Error(Code::kInvalid, "percentage must be between 0 and 100");
  return out;
}

}  // namespace

QosCgroupLimits PlanQosCgroupLimits(const std::vector<std::shared_ptr<const corev1::Pod>>& pods,
                                    const NodeContext& node, std::optional<int> percent_reserved,
                                    int64_t pods_memory) {
  const Asked asked = AskedBy(pods);
  QosCgroupLimits out;
  out.burstable.cpu_shares = MilliCpuToShares(asked.burstable_milli);
  out.best_effort.cpu_shares = 2;
  if (node.memory_qos.on && node.cgroup_v2) {
    // Protection counts for a pod only as far as those above it have as much.
    const bool tiered = node.memory_qos.tiered;
    out.all.memory_min_bytes = tiered ? asked.guaranteed_memory : 0;
    out.all.memory_low_bytes = out.burstable.memory_low_bytes = tiered ? asked.burstable_memory : 0;
  }
  if (percent_reserved && pods_memory > 0) {
    const int64_t burstable = pods_memory - asked.guaranteed_memory * *percent_reserved / 100;
    out.burstable.memory_limit_bytes = burstable;
    out.best_effort.memory_limit_bytes = burstable - asked.burstable_memory * *percent_reserved / 100;
  }
  return out;
}

Result<std::optional<int>> ParseQosReserved(const std::map<std::string, std::string>& reserved) {
  std::optional<int> out;
  for (const auto& [resource, text] : reserved) {
    if (resource != "memory") return Error(Code::kInvalid, "cannot reserve \"" + resource + "\" resource");
    auto percent = ParsePercentage(text);
    if (!percent) {
      return percent.error().Wrap("failed to parse percentage \"" + text + "\" for \"" + resource +
                                  "\" resource");
    }
    out = *percent;
  }
  return out;
}

}  // namespace keelson::kubelet
