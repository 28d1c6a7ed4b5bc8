// The watch caches of all stored resources, by etcd prefix. Those of custom resources come when the first request
// needs them: they are filled beside the running watch.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <vector>

#include "controlplane/etcd/client.h"
#include "controlplane/storage/stored_value_decoder.h"
#include "controlplane/storage/watch_cache.h"
#include "lib/base/mutex.h"

namespace keelson::storage {

// All readable objects of a resource at a revision.
struct StoredObjects {
  std::vector<ObjectPtr> objects;
  int64_t revision = 0;
};

// Reads them from etcd, in pages. `revision` 0: as of now. kUnavailable when a KMS does not answer.
Result<StoredObjects> ListStored(etcd::Client& client, StoredValueDecoder& decoder,
                                 const api::ResourceInfo& info, int64_t revision, const etcd::Limits& limits);
// Decodes one value. Null: the value cannot be decoded; the decoder remembers its key.
Result<ObjectPtr> DecodeOrSkip(StoredValueDecoder& decoder, const api::ResourceInfo& info,
                               std::string_view key, const etcd::KeyValue& kv);

// A cache and what has to happen before it can be read. Thread safe.
class CacheSlot {
 public:
  CacheSlot(const api::ResourceInfo& info, WatchCache::Limits limits, Clock& clock, WorkerPool& pool)
      : cache_(info, limits, clock, pool) {}

  WatchCache& cache() { return cache_; }
  const WatchCache& cache() const { return cache_; }
  bool filled() const { return filled_.load(); }

  // The watch's next revision. Kept until the cache is filled.
  void Apply(std::vector<WatchCache::Update> updates, int64_t revision);
  // All objects, by whoever follows etcd: ends the watches on the cache.
  void Replace(StoredObjects all);
  // All objects, for a cache that is not filled yet; does nothing otherwise.
  void Fill(StoredObjects all);
  // Other forms of the objects that the cache has at the same revisions.
  void Refresh(StoredObjects all);

 private:
  WatchCache cache_;
  mutable Mutex mutex_;              // serialises writers
  std::atomic<bool> filled_{false};  // written under mutex_; readers must not wait for an event in progress
  std::vector<std::pair<int64_t, std::vector<WatchCache::Update>>> waiting_ KEELSON_GUARDED_BY(mutex_);
};

class WatchCaches {  // thread safe
 public:
  // With a slot for each resource of the static table. `pool`: as of WatchCache.
  WatchCaches(WatchCache::Limits limits, Clock& clock, WorkerPool& pool);

  // The cache of a resource; null: it is not stored, or not filled yet.
  WatchCache* Of(const api::ResourceInfo& info) const;
  // The slot that an etcd key belongs to, and the key inside its resource; null: no known resource has such keys.
  CacheSlot* Route(std::string_view etcd_key, std::string_view& key) const;
  void ForEach(const std::function<void(WatchCache&)>& each) const;
  void ForEachSlot(const std::function<void(CacheSlot&)>& each) const;

  // The slot of a custom resource, made on first use. One of another resource that had the same prefix (a definition
  // that came back with another scope) is retired: its watches end with kGone.
  CacheSlot& SlotFor(const api::ResourceInfo& info);

 private:
  const WatchCache::Limits limits_;
  Clock& clock_;
  WorkerPool& pool_;
  mutable std::shared_mutex mutex_;
  std::map<std::string, CacheSlot*, std::less<>> by_prefix_;  // guarded by mutex_
  std::deque<CacheSlot> slots_;                               // guarded by mutex_; never shrinks
};

}  // namespace keelson::storage
