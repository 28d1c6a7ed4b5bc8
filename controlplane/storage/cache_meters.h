// What is counted of caches and of lists, by resource: upstream's apiserver_watch_cache_*, apiserver_cache_*,
// apiserver_storage_* and watch_cache_capacity.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

#include "controlplane/etcd/client.h"
#include "lib/api/scheme.h"
#include "lib/metrics/metrics.h"

namespace keelson::storage {

// Of one resource's cache. Looked up once: events are many.
struct CacheMeters {
  CacheMeters(const api::ResourceInfo& info, size_t capacity);

  metrics::Value &received, &dispatched, &initial, &initializations, &revision;
  metrics::Value &lists, &list_fetched, &list_returned;
};

// An event of etcd's, before it is read.
void CountStorageEvent(const api::ResourceInfo& info);
// A stored object that nobody can read.
void CountDecodeError(const api::ResourceInfo& info);

// A list that etcd was asked for.
struct StorageList {
  explicit StorageList(const api::ResourceInfo& what) : info(what) {}
  ~StorageList();  // counts
  StorageList(const StorageList&) = delete;
  StorageList& operator=(const StorageList&) = delete;

  const api::ResourceInfo& info;
  size_t fetched = 0, evaluated = 0, returned = 0;
};

// How a read that is to be consistent went, and how long it waited for its cache.
void CountConsistentRead(const api::ResourceInfo& info, bool good);
void ObserveReadWait(const api::ResourceInfo& info, std::chrono::duration<double> waited);

// apiserver_storage_size_bytes, asked of etcd whenever /metrics is.
void TellDatabaseSize(const std::shared_ptr<etcd::Client>& client);

}  // namespace keelson::storage
