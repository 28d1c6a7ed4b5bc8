#include "controlplane/scheduler/volumes/volumes.h"

#include <charconv>

#include "lib/api/meta.h"

namespace keelson::scheduler {

namespace {

// Resource versions of one resource grow, and are compared here.
template <typename T>
uint64_t VersionOf(const T& object) {
  const std::string& text = object.metadata().resource_version();
  uint64_t version = 0;
  std::from_chars(text.data(), text.data() + text.size(), version);
  return version;
}

}  // namespace

template <typename T>
void VolumeCatalog::AssumeCache<T>::Set(const std::string& key, Ptr<T> object) {
  const auto kept = assumed.find(key);
  if (kept != assumed.end() && (!object || VersionOf(*object) > VersionOf(*kept->second))) {
    assumed.erase(kept);
  }
  if (object) {
    shown[key] = std::move(object);
  } else {
    shown.erase(key);
  }
}

// The answer to a write may be older than what the informers have shown since.
template <typename T>
void VolumeCatalog::AssumeCache<T>::Assume(const std::string& key, const T& object) {
  const auto it = shown.find(key);
  if (it == shown.end() || VersionOf(*it->second) > VersionOf(object)) {
    assumed.erase(key);
  } else {
    assumed[key] = std::make_shared<const T>(object);
  }
}

template <typename T>
VolumeCatalog::Ptr<T> VolumeCatalog::AssumeCache<T>::Find(std::string_view key) const {
  if (const auto it = assumed.find(key); it != assumed.end()) return it->second;
  const auto it = shown.find(key);
  return it == shown.end() ? nullptr : it->second;
}

void VolumeCatalog::OnChange(std::function<void()> changed) {
  MutexLock lock(mutex_);
  changed_ = std::move(changed);
}

void VolumeCatalog::Changed() {
  if (changed_) changed_();
}

void VolumeCatalog::SetClaim(const std::string& key, Ptr<Claim> claim) {
  MutexLock lock(mutex_);
  claims_.Set(key, std::move(claim));
  Changed();
}

void VolumeCatalog::SetVolume(const std::string& name, Ptr<Volume> volume) {
  MutexLock lock(mutex_);
  volumes_.Set(name, std::move(volume));
  Changed();
}

void VolumeCatalog::SetClass(const std::string& name, Ptr<storagev1::StorageClass> storage_class) {
  MutexLock lock(mutex_);
  classes_.Set(name, std::move(storage_class));
  Changed();
}

void VolumeCatalog::SetNodeDrivers(const std::string& node, Ptr<storagev1::CSINode> drivers) {
  MutexLock lock(mutex_);
  node_drivers_.Set(node, std::move(drivers));
  Changed();
}

void VolumeCatalog::SetDriver(const std::string& name, Ptr<storagev1::CSIDriver> driver) {
  MutexLock lock(mutex_);
  drivers_.Set(name, std::move(driver));
  Changed();
}

void VolumeCatalog::SetCapacity(const std::string& key, Ptr<storagev1::CSIStorageCapacity> capacity) {
  MutexLock lock(mutex_);
  capacities_.Set(key, std::move(capacity));
  Changed();
}

void VolumeCatalog::SetAttachment(const std::string& name,
                                  const Ptr<storagev1::VolumeAttachment>& attachment) {
  MutexLock lock(mutex_);
  if (attachment) {
    const std::string& node = attachment->spec().node_name();
    const std::string& volume = attachment->spec().source().persistent_volume_name();
    if (volume.empty()) return;  // inlineVolumeSpec: no PersistentVolume to count
    nodes_of_attachments_[name] = node;
    attachments_[node][name] = volume;
    return;
  }
  const auto node = nodes_of_attachments_.find(name);
  if (node == nodes_of_attachments_.end()) return;
  const auto of_node = attachments_.find(node->second);
  of_node->second.erase(name);
  if (of_node->second.empty()) attachments_.erase(of_node);
  nodes_of_attachments_.erase(node);
}

std::vector<std::string> VolumeCatalog::AttachedTo(const std::string& node) const {
  MutexLock lock(mutex_);
  std::vector<std::string> out;
  const auto of_node = attachments_.find(node);
  if (of_node == attachments_.end()) return out;
  for (const auto& [name, volume] : of_node->second) out.push_back(volume);
  return out;
}

VolumeCatalog::Ptr<VolumeCatalog::Claim> VolumeCatalog::FindClaim(std::string_view ns,
                                                                  std::string_view name) const {
  MutexLock lock(mutex_);
  return claims_.Find(api::KeyOf(ns, name));
}

VolumeCatalog::Ptr<VolumeCatalog::Volume> VolumeCatalog::FindVolume(const std::string& name) const {
  MutexLock lock(mutex_);
  return volumes_.Find(name);
}

VolumeCatalog::Ptr<storagev1::StorageClass> VolumeCatalog::FindClass(const std::string& name) const {
  MutexLock lock(mutex_);
  return classes_.Find(name);
}

VolumeCatalog::Ptr<storagev1::CSINode> VolumeCatalog::DriversOf(const std::string& node) const {
  MutexLock lock(mutex_);
  return node_drivers_.Find(node);
}

VolumeCatalog::Ptr<storagev1::CSIDriver> VolumeCatalog::FindDriver(const std::string& name) const {
  MutexLock lock(mutex_);
  return drivers_.Find(name);
}

std::vector<VolumeCatalog::Ptr<VolumeCatalog::Volume>> VolumeCatalog::VolumesOfClass(
    const std::string& storage_class) const {
  MutexLock lock(mutex_);
  std::vector<Ptr<Volume>> out;
  for (const auto& [name, shown] : volumes_.shown) {
    Ptr<Volume> volume = volumes_.Find(name);
    if (volume->spec().storage_class_name() == storage_class) out.push_back(std::move(volume));
  }
  return out;
}

std::vector<VolumeCatalog::Ptr<storagev1::CSIStorageCapacity>> VolumeCatalog::CapacitiesOfClass(
    const std::string& storage_class) const {
  MutexLock lock(mutex_);
  std::vector<Ptr<storagev1::CSIStorageCapacity>> out;
  for (const auto& [key, capacity] : capacities_.shown) {
    if (capacity->storage_class_name() == storage_class) out.push_back(capacity);
  }
  return out;
}

void VolumeCatalog::Assume(const Claim& claim) {
  MutexLock lock(mutex_);
  claims_.Assume(api::KeyOf(claim), claim);
}

void VolumeCatalog::Assume(const Volume& volume) {
  MutexLock lock(mutex_);
  volumes_.Assume(volume.metadata().name(), volume);
}

void VolumeCatalog::RestoreClaim(const std::string& key) {
  MutexLock lock(mutex_);
  claims_.assumed.erase(key);
}

void VolumeCatalog::RestoreVolume(const std::string& name) {
  MutexLock lock(mutex_);
  volumes_.assumed.erase(name);
}

}  // namespace keelson::scheduler
