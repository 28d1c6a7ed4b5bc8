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

void DeviceCatalog::SetClaim(const std::string& key, ClaimPtr claim) {
  MutexLock lock(mutex_);
  const auto kept = assumed_.find(key);
  if (kept != assumed_.end() && (!claim || VersionOf(*claim) >= VersionOf(*kept->second))) {
    assumed_.erase(kept);
  }
  if (claim) {
    shown_[key] = std::move(claim);
  } else {
    shown_.erase(key);
  }
  stale_claims_.insert(key);
  Changed();
}

void DeviceCatalog::Assume(const Claim& claim) {
  MutexLock lock(mutex_);
  const std::string key = api::KeyOf(claim);
  const auto it = shown_.find(key);
  if (it == shown_.end() || it->second->metadata().uid() != claim.metadata().uid() ||
      VersionOf(*it->second) > VersionOf(claim)) {
    assumed_.erase(key);
  } else {
    assumed_[key] = std::make_shared<const Claim>(claim);
  }
  stale_claims_.insert(key);
  Changed();
}

void DeviceCatalog::Restore(const std::string& key) {
  MutexLock lock(mutex_);
  assumed_.erase(key);
  stale_claims_.insert(key);
  Changed();
}

DeviceCatalog::ClaimPtr DeviceCatalog::FindClaim(std::string_view ns, std::string_view name) const {
  MutexLock lock(mutex_);
  return Current(api::KeyOf(ns, name));
}

bool DeviceCatalog::AddPending(ClaimPtr claim) {
  MutexLock lock(mutex_);
  const std::string uid = claim->metadata().uid();
  const bool added = pending_.try_emplace(uid, std::move(claim)).second;
  if (added) stale_pending_.insert(uid);
  return added;
}

bool DeviceCatalog::IsPending(const std::string& uid) const {
  MutexLock lock(mutex_);
  return pending_.contains(uid);
}

bool DeviceCatalog::RemovePending(const std::string& uid) {
  MutexLock lock(mutex_);
  if (pending_.erase(uid) == 0) return false;
  stale_pending_.insert(uid);
  Changed();
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
  std::vector<std::pair<std::string, ClaimPtr>> claims, pending;
  std::map<std::string, SlicePtr> slices;
  {
    MutexLock lock(mutex_);
    for (const std::string& key : stale_claims_) claims.emplace_back(key, Current(key));
    for (const std::string& uid : stale_pending_) {
      const auto it = pending_.find(uid);
      pending.emplace_back(uid, it == pending_.end() ? nullptr : it->second);
    }
    stale_claims_.clear();
    stale_pending_.clear();
    slices.swap(new_slices_);
  }
  const auto count = [this](auto& counted, auto& changed) {
    for (auto& [key, claim] : changed) {
      const bool allocated = Allocated(claim);
      if (allocated) view_.uses.Add(claim->status().allocation());
      if (const auto before = counted.find(key); before != counted.end()) {
        view_.uses.Remove(before->second->status().allocation());
        counted.erase(before);
      }
      if (allocated) counted.emplace(key, std::move(claim));
    }
  };
  count(counted_, claims);
  count(counted_pending_, pending);
  for (auto& [name, slice] : slices) view_.pools.Set(name, std::move(slice));
  return view_;
}

}  // namespace keelson::scheduler
