#include "controlplane/scheduler/volumes/volumes.h"

#include <charconv>

#include "lib/api/meta.h"

namespace keelson::scheduler {

namespace {

// Versions of one resource grow; this is the one thing that is read from them.
template <typename T>
uint64_t VersionOf(const T& object) {
  const std::string& text = object.metadata().resource_version();
  uint64_t version = 0;
  std::from_chars(text.data(), text.data() + text.size(), version);
  return version;
}

}  // namespace

template <typename T>
void VolumeCatalog::Shelf<T>::Set(const std::string& key, Ptr<T> object) {
  const auto kept = assumed.find(key);
  if (kept != assumed.end() && (!object || VersionOf(*object) > VersionOf(*kept->second)))
    assumed.erase(kept);
  if (object) {
    told[key] = std::move(object);
  } else {
    told.erase(key);
  }
}

// An answer to a write may come later than what others have made of it since.
template <typename T>
void VolumeCatalog::Shelf<T>::Assume(const std::string& key, const T& object) {
  const auto it = told.find(key);
  if (it == told.end() || VersionOf(*it->second) > VersionOf(object)) {
    assumed.erase(key);
  } else {
    assumed[key] = std::make_shared<const T>(object);
  }
}

template <typename T>
VolumeCatalog::Ptr<T> VolumeCatalog::Shelf<T>::Find(std::string_view key) const {
  if (const auto it = assumed.find(key); it != assumed.end()) return it->second;
  const auto it = told.find(key);
  return it == told.end() ? nullptr : it->second;
}

void VolumeCatalog::OnChange(std::function<void()> told) {
  MutexLock lock(mutex_);
  told_ = std::move(told);
}

void VolumeCatalog::Changed() {
  if (told_) told_();
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
  for (const auto& [name, told] : volumes_.told) {
    Ptr<Volume> volume = volumes_.Find(name);
    if (volume->spec().storage_class_name() == storage_class) out.push_back(std::move(volume));
  }
  return out;
}

std::vector<VolumeCatalog::Ptr<storagev1::CSIStorageCapacity>> VolumeCatalog::CapacitiesOfClass(
    const std::string& storage_class) const {
  MutexLock lock(mutex_);
  std::vector<Ptr<storagev1::CSIStorageCapacity>> out;
  for (const auto& [key, capacity] : capacities_.told) {
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

void VolumeCatalog::ForgetClaim(const std::string& key) {
  MutexLock lock(mutex_);
  claims_.assumed.erase(key);
}

void VolumeCatalog::ForgetVolume(const std::string& name) {
  MutexLock lock(mutex_);
  volumes_.assumed.erase(name);
}

}  // namespace keelson::scheduler
