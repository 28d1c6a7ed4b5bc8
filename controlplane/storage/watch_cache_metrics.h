// Metrics of watch caches and of lists, by resource: upstream's apiserver_watch_cache_*, apiserver_cache_*,
// apiserver_storage_* and watch_cache_capacity.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

#include "controlplane/etcd/client.h"
#include "lib/api/scheme.h"
#include "lib/metrics/metrics.h"

namespace keelson::storage {

// Of one resource's cache. Looked up once, as there are many events.
struct WatchCacheMetrics {
  WatchCacheMetrics(const api::ResourceInfo& info, size_t capacity);

  metrics::Value &received, &dispatched, &initial, &initializations, &revision;
  metrics::Value &lists, &list_fetched, &list_returned;
};

// Counts an event of etcd, before it is decoded.
void CountStorageEvent(const api::ResourceInfo& info);
// Counts a stored value that cannot be read.
void CountDecodeError(const api::ResourceInfo& info);

// Counts one list from etcd when it is destroyed.
struct StorageList {
  explicit StorageList(const api::ResourceInfo& what) : info(what) {}
  ~StorageList();  // counts
  StorageList(const StorageList&) = delete;
  StorageList& operator=(const StorageList&) = delete;

  const api::ResourceInfo& info;
  size_t fetched = 0, evaluated = 0, returned = 0;
};

// The outcome of a consistent read, and how long a read waited for its cache.
void CountConsistentRead(const api::ResourceInfo& info, bool good);
void ObserveReadWait(const api::ResourceInfo& info, std::chrono::duration<double> waited);

// Registers apiserver_storage_size_bytes: each scrape asks `client`.
void TellDatabaseSize(const std::shared_ptr<etcd::Client>& client);

}  // namespace keelson::storage
