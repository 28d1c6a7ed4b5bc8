#include "controlplane/scheduler/devices/catalog.h"

#include <charconv>

#include "lib/api/meta.h"

namespace keelson::scheduler {

namespace {

// Resource versions of one resource grow, and are compared here.
uint64_t VersionOf(const resourcev1::ResourceClaim& claim) {
  const std::string& text = claim.metadata().resource_version();
  uint64_t version = 0;
  std::from_chars(text.data(), text.data() + text.size(), version);
  return version;
}

bool Allocated(const DeviceCatalog::ClaimPtr& claim) { return claim && claim->status().has_allocation(); }

// Whether both use the same devices.
bool SameUse(const DeviceCatalog::ClaimPtr& a, const DeviceCatalog::ClaimPtr& b) {
  if (!Allocated(a) || !Allocated(b)) return Allocated(a) == Allocated(b);
  return a->status().allocation().devices().SerializeAsString() ==
         b->status().allocation().devices().SerializeAsString();
}

}  // namespace

void DeviceCatalog::OnChange(std::function<void()> changed) {
  MutexLock lock(mutex_);
  changed_ = std::move(changed);
}

void DeviceCatalog::Changed() {
  if (changed_) changed_();
}

DeviceCatalog::ClaimPtr DeviceCatalog::Current(const std::string& key) const {
  if (const auto it = assumed_.find(key); it != assumed_.end()) return it->second;
  const auto it = shown_.find(key);
  return it == shown_.end() ? nullptr : it->second;
}

void DeviceCatalog::Replace(const ClaimPtr& before, const ClaimPtr& after) {
  if (before == after || SameUse(before, after)) return;
  if (Allocated(after)) new_uses_.emplace_back(after, true);
  if (Allocated(before)) new_uses_.emplace_back(before, false);
}

void DeviceCatalog::SetClaim(const std::string& key, ClaimPtr claim) {
  MutexLock lock(mutex_);
  const ClaimPtr before = Current(key);
  const auto kept = assumed_.find(key);
  if (kept != assumed_.end() && (!claim || VersionOf(*claim) >= VersionOf(*kept->second))) {
    assumed_.erase(kept);
  }
  if (claim) {
    shown_[key] = std::move(claim);
  } else {
    shown_.erase(key);
  }
  Replace(before, Current(key));
  Changed();
}

void DeviceCatalog::Assume(const Claim& claim) {
  MutexLock lock(mutex_);
  const std::string key = api::KeyOf(claim);
  const ClaimPtr before = Current(key);
  const auto it = shown_.find(key);
  if (it == shown_.end() || it->second->metadata().uid() != claim.metadata().uid() ||
      VersionOf(*it->second) > VersionOf(claim)) {
    assumed_.erase(key);
  } else {
    assumed_[key] = std::make_shared<const Claim>(claim);
  }
  Replace(before, Current(key));
  Changed();
}

void DeviceCatalog::Restore(const std::string& key) {
  MutexLock lock(mutex_);
  const ClaimPtr before = Current(key);
  assumed_.erase(key);
  Replace(before, Current(key));
  Changed();
}

DeviceCatalog::ClaimPtr DeviceCatalog::FindClaim(std::string_view ns, std::string_view name) const {
  MutexLock lock(mutex_);
  return Current(api::KeyOf(ns, name));
}

bool DeviceCatalog::AddPending(ClaimPtr claim) {
  MutexLock lock(mutex_);
  const auto [it, added] = pending_.try_emplace(claim->metadata().uid(), claim);
  if (added) Replace(nullptr, claim);
  return added;
}

bool DeviceCatalog::IsPending(const std::string& uid) const {
  MutexLock lock(mutex_);
  return pending_.contains(uid);
}

bool DeviceCatalog::RemovePending(const std::string& uid) {
  MutexLock lock(mutex_);
  const auto it = pending_.find(uid);
  if (it == pending_.end()) return false;
  Replace(it->second, nullptr);
  pending_.erase(it);
  return true;
}

void DeviceCatalog::SetSlice(const std::string& name, SlicePtr slice) {
  MutexLock lock(mutex_);
  new_slices_[name] = std::move(slice);
  Changed();
}

void DeviceCatalog::SetClass(const std::string& name, ClassPtr device_class) {
  MutexLock lock(mutex_);
  if (device_class) {
    classes_[name] = std::move(device_class);
  } else {
    classes_.erase(name);
  }
  Changed();
}

DeviceCatalog::ClassPtr DeviceCatalog::FindClass(const std::string& name) const {
  MutexLock lock(mutex_);
  const auto it = classes_.find(name);
  return it == classes_.end() ? nullptr : it->second;
}

DeviceCatalog::View& DeviceCatalog::Refresh() {
  std::vector<std::pair<ClaimPtr, bool>> uses;
  std::map<std::string, SlicePtr> slices;
  {
    MutexLock lock(mutex_);
    uses.swap(new_uses_);
    slices.swap(new_slices_);
  }
  for (const auto& [claim, counts] : uses) {
    if (counts) {
      view_.uses.Add(claim->status().allocation());
    } else {
      view_.uses.Remove(claim->status().allocation());
    }
  }
  for (auto& [name, slice] : slices) view_.pools.Set(name, std::move(slice));
  return view_;
}

}  // namespace keelson::scheduler
