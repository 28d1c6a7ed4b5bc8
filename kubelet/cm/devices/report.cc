// What the device manager tells the node's status, pods' statuses and PodResources.
#include "kubelet/cm/devices/manager.h"

namespace keelson::kubelet::devices {

std::map<std::string, NodeResource> DeviceManager::NodeResources() const {
  MutexLock lock(mutex_);
  return inventory_.NodeResources();
}

void DeviceManager::RaiseAllocatable(const std::string& uid, k8s::ResourceList& allocatable) const {
  MutexLock lock(mutex_);
  auto pod = pods_.pods().find(uid);
  if (pod == pods_.pods().end()) return;
  for (const auto& [container, allocations] : pod->second) {
    for (const auto& [resource, allocation] : allocations) {
      auto in_use = api::Amount::FromInt(static_cast<int64_t>(pods_.InUse(resource).size()));
      api::Amount& amount = allocatable[resource];
      amount = std::max(amount, in_use);
    }
  }
}

std::vector<ResourceDevice> DeviceManager::ContainerDevices(const std::string& uid,
                                                            const std::string& container) const {
  std::vector<ResourceDevice> out;
  MutexLock lock(mutex_);
  const PodDevices::Allocations* allocations = pods_.Find(uid, container);
  if (!allocations) return out;
  for (const auto& [resource, allocation] : *allocations) {
    for (const auto& [id, nodes] : allocation.devices) {
      out.push_back({resource, id, nodes.empty() ? NumaNodes() : NumaNodes(nodes)});
    }
  }
  return out;
}

std::vector<ResourceDevice> DeviceManager::AllocatableDevices() const {
  MutexLock lock(mutex_);
  return inventory_.AllocatableDevices();
}

namespace {

corev1::ResourceStatus& StatusOf(corev1::ContainerStatus& container, const std::string& resource) {
  for (corev1::ResourceStatus& item : *container.mutable_allocated_resources_status()) {
    if (item.name() != resource) continue;
    item.clear_resources();
    return item;
  }
  corev1::ResourceStatus& item = *container.add_allocated_resources_status();
  item.set_name(resource);
  return item;
}

}  // namespace

void DeviceManager::FillResourceHealth(const std::string& uid, corev1::PodStatus& status) const {
  MutexLock lock(mutex_);
  for (corev1::ContainerStatus& container : *status.mutable_container_statuses()) {
    const PodDevices::Allocations* allocations = pods_.Find(uid, container.name());
    if (!allocations) continue;
    for (const auto& [resource, allocation] : *allocations) {
      corev1::ResourceStatus& item = StatusOf(container, resource);
      const Resource* state = inventory_.Find(resource);
      for (const auto& [id, nodes] : allocation.devices) {
        // As the plugin said last; of a device that it has not named there is no complaint.
        auto device = state ? state->devices.find(id) : DeviceMap::const_iterator();
        bool unhealthy = state && device != state->devices.end() && !device->second.healthy;
        corev1::ResourceHealth& health = *item.add_resources();
        health.set_resource_id(id);
        health.set_health(unhealthy ? "Unhealthy" : "Healthy");
      }
    }
  }
}

}  // namespace keelson::kubelet::devices
