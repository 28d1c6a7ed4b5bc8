// Hints and allocation.
#include "kubelet/cm/devices/hints.h"
#include "kubelet/cm/devices/manager.h"
#include "lib/k8s/field_error.h"
#include "lib/k8s/pods/pod_resources.h"
#include "lib/metrics/metrics.h"

namespace keelson::kubelet::devices {

struct DeviceManager::Target {
  const corev1::Pod& pod;
  const corev1::Container& container;
  const TopologyHint& affinity;
  std::string resource;
  size_t required;

  const std::string& uid() const { return pod.metadata().uid(); }
};

struct DeviceManager::Reservation {
  Ids ids, added;  // all that the container gets; those that the pod did not have
  std::shared_ptr<DevicePlugin> plugin;
};

bool DeviceManager::IsDeviceResource(const std::string& resource) const {
  return inventory_.Find(resource) || pods_.Any(resource) || reserved_.count(resource);
}

std::map<std::string, size_t> DeviceManager::RequestsOf(const corev1::Container& container) const {
  std::map<std::string, size_t> out;
  // Extended resources cannot be overcommitted: requests and limits are the same.
  for (const auto& [name, quantity] : container.resources().limits()) {
    int64_t amount = api::Amount::Of(quantity).Value();
    if (amount > 0 && IsDeviceResource(name)) out[name] = static_cast<size_t>(amount);
  }
  return out;
}

Ids DeviceManager::Free(const std::string& resource, const Resource& state) const {
  Ids free = state.Healthy();
  for (const std::string& id : pods_.InUse(resource)) free.erase(id);
  auto reserved = reserved_.find(resource);
  if (reserved != reserved_.end()) {
    for (const std::string& id : reserved->second) free.erase(id);
  }
  return free;
}

// nullopt: no preference.
std::optional<std::vector<TopologyHint>> DeviceManager::HintsFor(const std::string& resource,
                                                                 const Ids& allocated, const Ids& reusable,
                                                                 size_t required) const {
  const Resource* state = inventory_.Find(resource);
  if (!state || !state->HasTopology()) return std::nullopt;
  // After a restart what is allocated must get the hints that it got then.
  if (!allocated.empty()) {
    if (allocated.size() != required) return std::vector<TopologyHint>();
    return DeviceHints(state->devices, allocated, {}, required, options_.node_sets);
  }
  Ids free = Free(resource, *state);
  if (free.size() + reusable.size() < required) return std::vector<TopologyHint>();
  return DeviceHints(state->devices, free, reusable, required, options_.node_sets);
}

TopologyHints DeviceManager::Hints(const corev1::Pod& pod, const corev1::Container& container) {
  TopologyHints out;
  MutexLock lock(mutex_);
  for (const auto& [resource, required] : RequestsOf(container)) {
    const Allocation* held = pods_.Find(pod.metadata().uid(), container.name(), resource);
    auto hints = HintsFor(resource, held ? held->ids() : Ids(),
                          pods_.Reusable(pod, container.name(), resource), required);
    if (hints) out[resource] = std::move(*hints);
  }
  return out;
}

TopologyHints DeviceManager::PodHints(const corev1::Pod& pod) {
  TopologyHints out;
  k8s::ResourceList limits = k8s::PodLimits(pod, {.exclude_overhead = true});
  MutexLock lock(mutex_);
  for (const auto& [resource, amount] : limits) {
    int64_t required = amount.Value();
    if (required <= 0 || !IsDeviceResource(resource)) continue;
    auto hints =
        HintsFor(resource, pods_.OfPod(pod.metadata().uid(), resource), {}, static_cast<size_t>(required));
    if (hints) out[resource] = std::move(*hints);
  }
  return out;
}

std::optional<k8s::AdmitFailure> DeviceManager::Allocate(const corev1::Pod& pod,
                                                         const corev1::Container& container,
                                                         const TopologyHint& affinity) {
  Result<> done = AllocateAll(pod, container, affinity, calls_.get_token());
  if (done) return std::nullopt;
  return k8s::AdmitFailure{"UnexpectedAdmissionError",
                           "Allocate failed due to " + done.error().message() + ", which is unexpected"};
}

Result<> DeviceManager::AllocateAll(const corev1::Pod& pod, const corev1::Container& container,
                                    const TopologyHint& affinity, std::stop_token stop) {
  std::map<std::string, size_t> requests;
  {
    MutexLock lock(mutex_);
    requests = RequestsOf(container);
  }
  if (requests.empty()) return {};
  if (options_.running && options_.running(pod.metadata().uid(), container.name())) return {};
  bool any = false;
  for (const auto& [resource, required] : requests) {
    KEELSON_ASSIGN_OR_RETURN(bool added,
                             AllocateResource({pod, container, affinity, resource, required}, stop));
    any |= added;
  }
  return any ? WriteCheckpoint() : Result<>();
}

Result<bool> DeviceManager::AllocateResource(const Target& target, std::stop_token stop) {
  KEELSON_ASSIGN_OR_RETURN(std::optional<Reservation> reservation, Reserve(target, stop));
  if (!reservation) return false;
  SteadyTime begin = std::chrono::steady_clock::now();
  Result<Grant> grant = reservation->plugin->Allocate(reservation->ids, stop);
  static metrics::Family& duration = metrics::Histograms(
      "kubelet_device_plugin_alloc_duration_seconds",
      "Duration in seconds to serve a device plugin Allocation request. Broken down by resource name.",
      {.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}, {"resource_name"});
  duration.HistogramWith({target.resource})
      .Observe(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());

  MutexLock lock(mutex_);
  Unreserve(target.resource, reservation->added);
  if (!grant) return grant.error();
  Allocation allocation;
  const Resource* state = inventory_.Find(target.resource);
  for (const std::string& id : reservation->ids) {
    std::vector<int64_t>& nodes = allocation.devices[id];
    if (!state) continue;
    auto device = state->devices.find(id);
    if (device != state->devices.end() && device->second.nodes) nodes = *device->second.nodes;
  }
  allocation.grant = std::move(*grant);
  pods_.Insert(target.uid(), target.container.name(), target.resource, std::move(allocation));
  return true;
}

// In this order: a node that has just booted has plugins that are not back yet, and what its pods had before
// may be gone.
Result<> DeviceManager::CheckHealth(const Target& target) const {
  const Allocation* held = pods_.Find(target.uid(), target.container.name(), target.resource);
  if (held && held->devices.size() != target.required) {
    return Error(Code::kInvalid,
                 "pod " + k8s::Quote(target.uid()) + " container " + k8s::Quote(target.container.name()) +
                     " changed request for resource " + k8s::Quote(target.resource) + " from " +
                     std::to_string(held->devices.size()) + " to " + std::to_string(target.required));
  }
  const Resource* state = inventory_.Find(target.resource);
  if (!state) return Error(Code::kInvalid, "cannot allocate unregistered device " + target.resource);
  Ids healthy = state->Healthy();
  if (healthy.empty()) {
    return Error(Code::kInvalid,
                 "no healthy devices present; cannot allocate unhealthy devices " + target.resource);
  }
  if (held) {
    for (const auto& [id, nodes] : held->devices) {
      if (!healthy.count(id)) {
        return Error(
            Code::kInvalid,
            "previously allocated devices are no longer healthy; cannot allocate unhealthy devices " +
                target.resource);
      }
    }
  }
  return {};
}

// nullopt when the container has its devices already.
Result<std::optional<DeviceManager::Reservation>> DeviceManager::Reserve(const Target& target,
                                                                         std::stop_token stop) {
  std::optional<Ids> preferred;
  for (;;) {
    DevicePlan plan;
    std::shared_ptr<DevicePlugin> plugin;
    {
      MutexLock lock(mutex_);
      KEELSON_RETURN_IF_ERROR(CheckHealth(target));
      if (pods_.Find(target.uid(), target.container.name(), target.resource)) {
        return std::optional<Reservation>();
      }
      const Resource& state = *inventory_.Find(target.resource);
      DeviceRequest request{target.resource,
                            target.required,
                            pods_.Reusable(target.pod, target.container.name(), target.resource),
                            Free(target.resource, state),
                            state.devices,
                            target.affinity};
      KEELSON_ASSIGN_OR_RETURN(plan, PlanDevices(request));
      bool ask = plan.missing > 0 && state.options.preferred_allocation && !preferred;
      if (!ask) {
        Reservation out{ChooseDevices(plan, preferred.value_or(Ids())), {}, state.plugin};
        for (const std::string& id : out.ids) {
          if (!request.reusable.count(id)) out.added.insert(id);
        }
        reserved_[target.resource].insert(out.added.begin(), out.added.end());
        return std::optional<Reservation>(std::move(out));
      }
      plugin = state.plugin;
    }
    Ids available = plan.offered;
    available.insert(plan.taken.begin(), plan.taken.end());
    auto answer = plugin->PreferredAllocation(available, plan.taken, target.required, stop);
    if (!answer) return answer.error().Wrap("device plugin GetPreferredAllocation rpc failed with err");
    // Others may have taken of these meanwhile: what is left of the preference counts.
    preferred = std::move(*answer);
  }
}

void DeviceManager::Unreserve(const std::string& resource, const Ids& ids) {
  auto it = reserved_.find(resource);
  if (it == reserved_.end()) return;
  for (const std::string& id : ids) it->second.erase(id);
  if (it->second.empty()) reserved_.erase(it);
}

}  // namespace keelson::kubelet::devices
