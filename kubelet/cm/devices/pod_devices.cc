#include "kubelet/cm/devices/pod_devices.h"

#include <algorithm>

#include "lib/base/log.h"
#include "lib/k8s/pods/pod_resources.h"

namespace keelson::kubelet::devices {

Ids Allocation::ids() const {
  Ids out;
  for (const auto& [id, nodes] : devices) out.insert(out.end(), id);
  return out;
}

void PodDevices::Insert(const std::string& uid, const std::string& container, const std::string& resource,
                        Allocation allocation) {
  pods_[uid][container][resource] = std::move(allocation);
}

bool PodDevices::Remove(const std::string& uid) { return pods_.erase(uid) > 0; }

const PodDevices::Allocations* PodDevices::Find(const std::string& uid, const std::string& container) const {
  auto pod = pods_.find(uid);
  if (pod == pods_.end()) return nullptr;
  auto it = pod->second.find(container);
  return it == pod->second.end() ? nullptr : &it->second;
}

const Allocation* PodDevices::Find(const std::string& uid, const std::string& container,
                                   const std::string& resource) const {
  const Allocations* allocations = Find(uid, container);
  if (!allocations) return nullptr;
  auto it = allocations->find(resource);
  return it == allocations->end() ? nullptr : &it->second;
}

bool PodDevices::Any(const std::string& resource) const {
  for (const auto& [uid, containers] : pods_) {
    for (const auto& [container, allocations] : containers) {
      if (allocations.count(resource)) return true;
    }
  }
  return false;
}

Ids PodDevices::InUse(const std::string& resource) const {
  Ids out;
  for (const auto& [uid, containers] : pods_) out.merge(OfPod(uid, resource));
  return out;
}

Ids PodDevices::OfPod(const std::string& uid, const std::string& resource) const {
  Ids out;
  auto pod = pods_.find(uid);
  if (pod == pods_.end()) return out;
  for (const auto& [container, allocations] : pod->second) {
    auto it = allocations.find(resource);
    if (it != allocations.end()) out.merge(it->second.ids());
  }
  return out;
}

Ids PodDevices::Holders(const std::string& resource, const Ids& devices) const {
  Ids out;
  for (const auto& [uid, containers] : pods_) {
    Ids held = OfPod(uid, resource);
    if (std::any_of(held.begin(), held.end(), [&](const std::string& id) { return devices.count(id); })) {
      out.insert(uid);
    }
  }
  return out;
}

Ids PodDevices::Reusable(const corev1::Pod& pod, const std::string& container,
                         const std::string& resource) const {
  Ids ended, kept;
  auto add = [&](const corev1::Container& other, Ids& to) {
    if (other.name() == container) return;
    if (const Allocation* held = Find(pod.metadata().uid(), other.name(), resource)) to.merge(held->ids());
  };
  for (const auto& init : pod.spec().init_containers()) add(init, k8s::IsSidecar(init) ? kept : ended);
  for (const auto& app : pod.spec().containers()) add(app, kept);
  for (const std::string& id : kept) ended.erase(id);
  return ended;
}

Ids PodDevices::Uids() const {
  Ids out;
  for (const auto& [uid, containers] : pods_) out.insert(out.end(), uid);
  return out;
}

namespace {

// Whether `key` is new; a different value for a key that is there is the plugins' mistake.
bool Claim(std::map<std::string, std::string>& seen, const std::string& key, const std::string& value,
           std::string_view what) {
  auto [it, fresh] = seen.emplace(key, value);
  if (!fresh && it->second != value) {
    log::Error("Device plugins disagree on what a container gets",
               {{"what", what}, {"key", key}, {"taken", it->second}, {"ignored", value}});
  }
  return fresh;
}

}  // namespace

void AddGrants(const PodDevices::Allocations& allocations, cri::ContainerConfig& config) {
  std::map<std::string, std::string> envs, mounts, devices, cdi;
  std::vector<std::pair<std::string, std::string>> new_envs;
  std::vector<cri::Mount> new_mounts;
  for (const auto& [resource, allocation] : allocations) {
    const Grant& grant = allocation.grant;
    for (const auto& [name, value] : grant.envs) {
      if (Claim(envs, name, value, "environment variable")) new_envs.emplace_back(name, value);
    }
    for (const cri::Mount& mount : grant.mounts) {
      if (Claim(mounts, mount.container_path, mount.host_path, "mount")) new_mounts.push_back(mount);
    }
    for (const cri::Device& device : grant.devices) {
      if (Claim(devices, device.container_path, device.host_path, "device")) config.devices.push_back(device);
    }
    for (const std::string& name : grant.cdi_devices) {
      if (Claim(cdi, name, "", "CDI device")) config.cdi_devices.push_back(name);
    }
    // The kubelet's own annotations stay.
    config.annotations.insert(grant.annotations.begin(), grant.annotations.end());
  }
  config.envs.insert(config.envs.begin(), new_envs.begin(), new_envs.end());
  config.mounts.insert(config.mounts.begin(), new_mounts.begin(), new_mounts.end());
}

}  // namespace keelson::kubelet::devices
