#include "controlplane/storage/watch_caches.h"

#include <algorithm>

#include "controlplane/apiextensions/custom_resource.h"
#include "controlplane/storage/convert.h"
#include "controlplane/storage/watch_cache_metrics.h"
#include "lib/base/log.h"

namespace keelson::storage {
namespace {

constexpr int64_t kPage = 500;

// Keys of a resource look like "namespace/name" or "name"; other keys under its prefix are not the API server's.
bool IsKeyOf(const api::ResourceInfo& info, std::string_view key) {
  return !key.empty() && std::count(key.begin(), key.end(), '/') == (info.namespaced ? 1 : 0);
}

// Whether two rows have objects of one resource, in whatever versions.
bool SameResource(const api::ResourceInfo& a, const api::ResourceInfo& b) {
  const apiextensions::CustomRow *one = apiextensions::CustomOf(a), *other = apiextensions::CustomOf(b);
  return one && other ? one->owner == other->owner : &a == &b;
}

}  // namespace

Result<ObjectPtr> DecodeOrSkip(StoredValueDecoder& decoder, const api::ResourceInfo& info,
                               std::string_view key, const etcd::KeyValue& kv) {
  Result<ObjectPtr> object = decoder.DecodeLatest(info, key, kv);
  if (object) return object;
  CountDecodeError(info);
  log::Warn("Cannot read a stored object", {{"key", kv.key}, {"err", object.error()}});
  if (object.error().Is(Code::kUnavailable)) return object;
  return ObjectPtr();
}

Result<StoredObjects> ListStored(etcd::Client& client, StoredValueDecoder& decoder,
                                 const api::ResourceInfo& info, int64_t revision,
                                 const etcd::Limits& limits) {
  std::string next(info.etcd_prefix);
  etcd::RangeOptions options;
  options.end = etcd::PrefixEnd(next);
  options.limit = kPage;
  options.revision = revision;
  StoredObjects all;
  StorageList list(info);
  while (true) {
    KEELSON_ASSIGN_OR_RETURN(etcd::RangeResult page, client.Range(next, options, limits));
    if (options.revision == 0) options.revision = page.revision;
    list.fetched += page.kvs.size();
    for (const etcd::KeyValue& kv : page.kvs) {
      std::string_view key = std::string_view(kv.key).substr(info.etcd_prefix.size());
      if (!IsKeyOf(info, key)) continue;
      KEELSON_ASSIGN_OR_RETURN(ObjectPtr object, DecodeOrSkip(decoder, info, key, kv));
      if (object) all.objects.push_back(std::move(object));
    }
    if (!page.more || page.kvs.empty()) break;
    next = page.kvs.back().key + '\0';
  }
  all.revision = options.revision;
  list.evaluated = list.fetched;
  list.returned = all.objects.size();
  return all;
}

void CacheSlot::Apply(std::vector<WatchCache::Update> updates, int64_t revision) {
  MutexLock lock(mutex_);
  if (filled_) {
    cache_.Apply(std::move(updates), revision);
  } else {
    waiting_.emplace_back(revision, std::move(updates));
  }
}

void CacheSlot::Replace(StoredObjects all) {
  MutexLock lock(mutex_);
  cache_.Replace(std::move(all.objects), all.revision);
  filled_ = true;
  waiting_.clear();
}

void CacheSlot::Fill(StoredObjects all) {
  MutexLock lock(mutex_);
  if (filled_) return;
  const int64_t revision = all.revision;
  cache_.Replace(std::move(all.objects), revision);
  filled_ = true;
  for (auto& [at, updates] : waiting_) {
    if (at > revision) cache_.Apply(std::move(updates), at);
  }
  waiting_ = {};
}

void CacheSlot::Refresh(StoredObjects all) {
  MutexLock lock(mutex_);
  if (filled_) cache_.Refresh(std::move(all.objects));
}

WatchCaches::WatchCaches(WatchCache::Limits limits, Clock& clock, WorkerPool& pool)
    : limits_(limits), clock_(clock), pool_(pool) {
  for (const api::ResourceInfo& info : api::Resources()) {
    if (info.etcd_prefix.empty() || &StoredAs(info) != &info) continue;
    by_prefix_.emplace(info.etcd_prefix, &slots_.emplace_back(info, limits, clock, pool));
  }
}

WatchCache* WatchCaches::Of(const api::ResourceInfo& info) const {
  CacheSlot* slot = nullptr;
  {
    std::shared_lock lock(mutex_);
    auto found = by_prefix_.find(info.etcd_prefix);
    if (found == by_prefix_.end()) return nullptr;
    slot = found->second;
  }
  if (!info.IsCustom()) return &slot->cache();  // the store is not ready before these are filled
  return SameResource(slot->cache().info(), info) && slot->filled() ? &slot->cache() : nullptr;
}

CacheSlot* WatchCaches::Route(std::string_view etcd_key, std::string_view& key) const {
  std::shared_lock lock(mutex_);
  auto after = by_prefix_.upper_bound(etcd_key);
  if (after == by_prefix_.begin()) return nullptr;
  const auto& [prefix, slot] = *std::prev(after);
  if (etcd_key.substr(0, prefix.size()) != prefix) return nullptr;
  key = etcd_key.substr(prefix.size());
  return IsKeyOf(slot->cache().info(), key) ? slot : nullptr;
}

void WatchCaches::ForEachSlot(const std::function<void(CacheSlot&)>& each) const {
  std::vector<CacheSlot*> all;
  {
    std::shared_lock lock(mutex_);
    for (const auto& entry : by_prefix_) all.push_back(entry.second);
  }
  for (CacheSlot* slot : all) each(*slot);
}

void WatchCaches::ForEach(const std::function<void(WatchCache&)>& each) const {
  ForEachSlot([&](CacheSlot& slot) { each(slot.cache()); });
}

CacheSlot& WatchCaches::SlotFor(const api::ResourceInfo& info) {
  std::unique_lock lock(mutex_);
  CacheSlot*& slot = by_prefix_[std::string(info.etcd_prefix)];
  if (slot && SameResource(slot->cache().info(), info)) return *slot;
  CacheSlot* retired = slot;
  slot = &slots_.emplace_back(info, limits_, clock_, pool_);
  CacheSlot& fresh = *slot;
  lock.unlock();
  if (retired) retired->Replace({});
  return fresh;
}

}  // namespace keelson::storage
