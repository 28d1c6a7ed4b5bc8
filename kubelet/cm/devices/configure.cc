// What containers are started with, until their pod is released.
#include "kubelet/cm/devices/manager.h"

namespace keelson::kubelet::devices {

Result<> DeviceManager::Configure(const corev1::Pod& pod, const corev1::Container& container,
                                  cri::ContainerConfig& config, std::stop_token stop) {
  const std::string& uid = pod.metadata().uid();
  std::map<std::string, size_t> requests;
  {
    MutexLock lock(mutex_);
    requests = RequestsOf(container);
  }
  if (requests.empty()) return {};
  bool missing = false;
  for (const auto& [resource, required] : requests) {
    KEELSON_RETURN_IF_ERROR(PreStart(uid, container.name(), resource, stop));
    MutexLock lock(mutex_);
    missing |= !pods_.Find(uid, container.name(), resource);
  }
  // The pod was admitted before the plugin was there, when the node booted.
  if (missing) KEELSON_RETURN_IF_ERROR(AllocateAll(pod, container, {}, stop));
  MutexLock lock(mutex_);
  if (const auto* allocations = pods_.Find(uid, container.name())) AddGrants(*allocations, config);
  return {};
}

Result<> DeviceManager::PreStart(const std::string& uid, const std::string& container,
                                 const std::string& resource, std::stop_token stop) {
  constexpr std::string_view kFailed = "device plugin PreStartContainer rpc failed with err";
  Ids ids;
  std::shared_ptr<DevicePlugin> plugin;
  {
    MutexLock lock(mutex_);
    const Resource* state = inventory_.Find(resource);
    if (!state) {
      return Error(Code::kUnavailable, "endpoint not found in cache for a registered resource: " + resource);
    }
    if (!state->options.pre_start) return {};
    const Allocation* held = pods_.Find(uid, container, resource);
    if (!held) {
      return Error(Code::kNotFound, "no devices found allocated in local cache for pod " + uid +
                                        ", container " + container + ", resource " + resource);
    }
    if (!state->plugin) {
      return Error(Code::kUnavailable, "endpoint of " + resource + " has been stopped").Wrap(kFailed);
    }
    ids = held->ids();
    plugin = state->plugin;
  }
  Result<> done = plugin->PreStart(ids, stop);
  return done ? Result<>() : done.error().Wrap(kFailed);
}

void DeviceManager::Release(const std::string& uid) {
  MutexLock lock(mutex_);
  if (pods_.Remove(uid)) Changed();
}

std::set<std::string> DeviceManager::Uids() const {
  MutexLock lock(mutex_);
  return pods_.Uids();
}

}  // namespace keelson::kubelet::devices
