#include "lib/k8s/pods/qos.h"

#include "lib/k8s/pods/pod_resources.h"

namespace keelson::k8s {

namespace {

constexpr std::string_view kCompute[] = {"cpu", "memory"};

struct Totals {
  ResourceList requests, limits;
  bool all_limited = true;  // every container limits both cpu and memory

  void Count(const corev1::ResourceRequirements& resources) {
    for (std::string_view name : kCompute) {
      const std::string key(name);
      const auto request = resources.requests().find(key);
      if (request != resources.requests().end()) requests[key] += api::Amount::Of(request->second);
      const auto limit = resources.limits().find(key);
      const api::Amount amount =
          limit == resources.limits().end() ? api::Amount() : api::Amount::Of(limit->second);
      if (amount.IsZero()) {
        all_limited = false;
      } else {
        limits[key] += amount;
      }
    }
    std::erase_if(requests, [](const auto& item) { return item.second.IsZero(); });
  }

  std::string_view Class() const {
    if (requests.empty() && limits.empty()) return kBestEffort;
    // Requests default to limits; where defaulting has not run, absent requests count as equal to the
    // limits.
    for (const auto& [name, amount] : requests) {
      if (!(AmountOf(limits, name) == amount)) return kBurstable;
    }
    return all_limited ? kGuaranteed : kBurstable;
  }
};

}  // namespace

std::string_view ComputeQosClass(const corev1::Pod& pod) {
  const corev1::PodSpec& spec = pod.spec();
  Totals totals;
  const corev1::ResourceRequirements& pod_level = spec.resources();
  if (!pod_level.requests().empty() || !pod_level.limits().empty()) {
    totals.Count(pod_level);
    return totals.Class();
  }
  for (const corev1::Container& container : spec.containers()) totals.Count(container.resources());
  for (const corev1::Container& container : spec.init_containers()) totals.Count(container.resources());
  return totals.Class();
}

std::string_view QosClass(const corev1::Pod& pod) {
  if (!pod.status().qos_class().empty()) return pod.status().qos_class();
  return ComputeQosClass(pod);
}

}  // namespace keelson::k8s
