#include "kubelet/cm/devices/inventory.h"

#include <algorithm>

namespace keelson::kubelet::devices {

bool Resource::HasTopology() const {
  return std::any_of(devices.begin(), devices.end(),
                     [](const auto& item) { return item.second.nodes.has_value(); });
}

Ids Resource::Healthy() const {
  Ids ids;
  if (!current) return ids;
  for (const auto& [id, device] : devices) {
    if (device.healthy) ids.insert(ids.end(), id);
  }
  return ids;
}

void Inventory::Restore(const Ids& resources, SteadyTime now) {
  for (const std::string& name : resources) {
    Resource& resource = resources_[name];
    resource.known = true;
    resource.gone_since = now;
  }
}

std::shared_ptr<DevicePlugin> Inventory::Connect(const std::string& name, uint64_t connection,
                                                 std::shared_ptr<DevicePlugin> plugin,
                                                 PluginOptions options) {
  Resource& resource = resources_[name];
  resource.plugin.swap(plugin);
  resource.options = options;
  resource.connection = connection;
  resource.gone_since.reset();
  return plugin;
}

std::optional<Ids> Inventory::List(const std::string& name, uint64_t connection, DeviceMap devices) {
  auto it = resources_.find(name);
  if (it == resources_.end() || it->second.connection != connection || !it->second.plugin) {
    return std::nullopt;
  }
  Resource& resource = it->second;
  Ids changed;
  for (const auto& [id, device] : devices) {
    auto before = resource.devices.find(id);
    if (before == resource.devices.end() || before->second.healthy != device.healthy) changed.insert(id);
  }
  resource.devices = std::move(devices);
  resource.known = resource.current = true;
  expired_.erase(name);
  return changed;
}

std::shared_ptr<DevicePlugin> Inventory::Disconnect(const std::string& name, uint64_t connection,
                                                    SteadyTime now) {
  auto it = resources_.find(name);
  if (it == resources_.end() || it->second.connection != connection) return nullptr;
  Resource& resource = it->second;
  std::shared_ptr<DevicePlugin> plugin = std::move(resource.plugin);
  if (!plugin) return nullptr;
  resource.current = false;
  resource.gone_since = now;
  if (!resource.known) resources_.erase(it);
  return plugin;
}

bool Inventory::Expire(SteadyTime now) {
  return std::erase_if(resources_, [&](const auto& item) {
           const auto& [name, resource] = item;
           if (!resource.gone_since || now - *resource.gone_since < kStopGracePeriod) return false;
           expired_.insert(name);
           return true;
         }) > 0;
}

SteadyTime Inventory::NextExpiry() const {
  SteadyTime next = SteadyTime::max();
  for (const auto& [name, resource] : resources_) {
    if (resource.gone_since) next = std::min(next, *resource.gone_since + kStopGracePeriod);
  }
  return next;
}

const Resource* Inventory::Find(const std::string& name) const {
  auto it = resources_.find(name);
  return it == resources_.end() || !it->second.known ? nullptr : &it->second;
}

uint64_t Inventory::ConnectionOf(const std::string& name, const std::string& socket) const {
  auto it = resources_.find(name);
  if (it == resources_.end() || !it->second.plugin || it->second.plugin->socket() != socket) return 0;
  return it->second.connection;
}

std::map<std::string, NodeResource> Inventory::NodeResources() const {
  std::map<std::string, NodeResource> out;
  for (const std::string& name : expired_) out[name];
  for (const auto& [name, resource] : resources_) {
    if (!resource.known) continue;
    out[name] = {static_cast<int64_t>(resource.devices.size()),
                 static_cast<int64_t>(resource.Healthy().size())};
  }
  return out;
}

std::map<std::string, Ids> Inventory::HealthyDevices() const {
  std::map<std::string, Ids> out;
  for (const auto& [name, resource] : resources_) {
    if (resource.known) out[name] = resource.Healthy();
  }
  return out;
}

std::vector<ResourceDevice> Inventory::AllocatableDevices() const {
  std::vector<ResourceDevice> out;
  for (const auto& [name, resource] : resources_) {
    for (const std::string& id : resource.Healthy()) out.push_back({name, id, resource.devices.at(id).nodes});
  }
  return out;
}

std::vector<std::shared_ptr<DevicePlugin>> Inventory::Clear() {
  std::vector<std::shared_ptr<DevicePlugin>> plugins;
  for (auto& [name, resource] : resources_) {
    if (resource.plugin) plugins.push_back(std::move(resource.plugin));
  }
  resources_.clear();
  return plugins;
}

}  // namespace keelson::kubelet::devices
