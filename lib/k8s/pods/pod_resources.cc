#include "lib/k8s/pods/pod_resources.h"

#include <algorithm>

#include "lib/k8s/pods/pod_util.h"

namespace keelson::k8s {

namespace {

// The amounts of one container. `wanted`: count its spec too, not just its status.
using Of = ResourceList (*)(const corev1::Container&, const corev1::ContainerStatus*, bool wanted);

ResourceList RequestsOf(const corev1::Container& container, const corev1::ContainerStatus* status,
                        bool wanted) {
  ResourceList list;
  if (wanted) list = ToResourceList(container.resources().requests());
  if (status) {
    Max(list, ToResourceList(status->allocated_resources()));
    Max(list, ToResourceList(status->resources().requests()));
  }
  return list;
}

ResourceList LimitsOf(const corev1::Container& container, const corev1::ContainerStatus* status,
                      bool wanted) {
  ResourceList list;
  if (wanted) list = ToResourceList(container.resources().limits());
  if (status) Max(list, ToResourceList(status->resources().limits()));
  return list;
}

// The kubelet reported that the node can never provide the requested resize.
bool IsInfeasible(const corev1::PodStatus& status) {
  const corev1::PodCondition* pending = FindCondition(status, "PodResizePending");
  return pending && pending->reason() == "Infeasible";
}

ResourceList Aggregate(const corev1::Pod& pod, bool use_status, Of of) {
  const bool infeasible = use_status && IsInfeasible(pod.status());
  const auto count = [&](const corev1::Container& container) {
    const corev1::ContainerStatus* status =
        use_status ? FindContainerStatus(pod.status(), container.name()) : nullptr;
    return of(container, status, !infeasible || !status || !status->has_resources());
  };
  ResourceList total, sidecars, peak;
  for (const corev1::Container& container : pod.spec().containers()) Add(total, count(container));
  for (const corev1::Container& container : pod.spec().init_containers()) {
    ResourceList own = count(container);
    if (IsSidecar(container)) {
      Add(total, own);
      Add(sidecars, own);
      Max(peak, sidecars);
    } else {
      Add(own, sidecars);
      Max(peak, own);
    }
  }
  Max(total, peak);
  return total;
}

// Amounts for the pod as a whole replace the sum over its containers. `told`: the same amounts in the
// status.
void Override(ResourceList& to, const QuantityMap& spec, const corev1::PodStatus* status,
              std::initializer_list<const QuantityMap*> told) {
  if (spec.empty()) return;
  ResourceList amounts;
  if (!status || !status->has_resources() || !IsInfeasible(*status)) amounts = ToResourceList(spec);
  if (status) {
    for (const QuantityMap* amount : told) Max(amounts, ToResourceList(*amount));
  }
  for (const auto& [name, quantity] : spec) {
    if (IsPodLevelResource(name)) to[name] = AmountOf(amounts, name);
  }
}

}  // namespace

ResourceList ToResourceList(const QuantityMap& quantities) {
  ResourceList list;
  for (const auto& [name, quantity] : quantities) list.emplace(name, api::Amount::Of(quantity));
  return list;
}

void FromResourceList(const ResourceList& list, QuantityMap& quantities) {
  quantities.clear();
  for (const auto& [name, amount] : list) quantities[name] = amount.ToQuantity();
}

void Add(ResourceList& to, const ResourceList& by) {
  for (const auto& [name, amount] : by) {
    auto [it, added] = to.try_emplace(name, amount);
    if (!added) it->second += amount;
  }
}

void Max(ResourceList& to, const ResourceList& by) {
  for (const auto& [name, amount] : by) {
    auto [it, added] = to.try_emplace(name, amount);
    if (!added && amount > it->second) it->second = amount;
  }
}

api::Amount AmountOf(const ResourceList& list, std::string_view resource) {
  auto it = list.find(resource);
  return it == list.end() ? api::Amount() : it->second;
}

ResourceList PodRequests(const corev1::Pod& pod, const PodResourcesOptions& options) {
  ResourceList list = Aggregate(pod, options.use_status, RequestsOf);
  const corev1::PodStatus& status = pod.status();
  if (!options.exclude_pod_level) {
    Override(list, pod.spec().resources().requests(), options.use_status ? &status : nullptr,
             {&status.allocated_resources(), &status.resources().requests()});
  }
  if (!options.exclude_overhead) Add(list, ToResourceList(pod.spec().overhead()));
  return list;
}

ResourceList PodLimits(const corev1::Pod& pod, const PodResourcesOptions& options) {
  ResourceList list = Aggregate(pod, options.use_status, LimitsOf);
  if (!options.exclude_pod_level) {
    Override(list, pod.spec().resources().limits(), options.use_status ? &pod.status() : nullptr,
             {&pod.status().resources().limits()});
  }
  if (options.exclude_overhead) return list;
  for (const auto& [name, quantity] : pod.spec().overhead()) {
    if (auto it = list.find(name); it != list.end()) it->second += api::Amount::Of(quantity);
  }
  return list;
}

bool IsSidecar(const corev1::Container& init_container) {
  return init_container.restart_policy() == "Always";
}

bool IsNativeResource(std::string_view name) {
  return name.find('/') == std::string_view::npos || name.find("kubernetes.io/") != std::string_view::npos;
}

bool IsHugePages(std::string_view name) { return name.starts_with("hugepages-"); }

bool IsExtendedResource(std::string_view name) {
  return !IsNativeResource(name) && !name.starts_with("requests.");
}

bool IsPodLevelResource(std::string_view name) {
  return name == "cpu" || name == "memory" || IsHugePages(name);
}

}  // namespace keelson::k8s
