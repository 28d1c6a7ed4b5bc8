// Internal to the store: its parts, and what its reads share.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "controlplane/etcd/lease_pool.h"
#include "controlplane/storage/reflector.h"
#include "controlplane/storage/store.h"
#include "controlplane/storage/stored_value_decoder.h"
#include "controlplane/storage/watch_cache_metrics.h"
#include "controlplane/storage/watch_caches.h"
#include "lib/base/worker_pool.h"

namespace keelson::storage {

// 0 for "". kBadRequest, in upstream's words, for what is no revision.
Result<int64_t> ParseRevision(std::string_view text);

struct Store::Impl {
  std::shared_ptr<etcd::Client> client;
  Options options;
  Clock& clock;
  etcd::LeasePool leases;
  static constexpr int kDispatchers = 2;
  WorkerPool dispatchers{kDispatchers};  // of events that many watch
  WatchCaches caches;
  RevisionGate gate;
  StoredValueDecoder decoder;
  RangeAllocations ranges;
  MasterLeases master_leases;
  std::atomic<bool> ready{false};
  Mutex fill_mutex;
  static constexpr int kConversions = 8;
  WorkerPool conversions{kConversions};  // of watches

  Impl(std::shared_ptr<etcd::Client> c, Options o, Clock& k)
      : client(std::move(c)),
        options(std::move(o)),
        clock(k),
        leases(*client, clock),
        caches({options.history_events, options.history_bytes}, clock, dispatchers),
        gate(*client),
        decoder(options.encryption),
        ranges(*client, options.json),
        master_leases(*client, options.json) {}

  Result<WatchCache*> CacheOf(const api::ResourceInfo& info, const Limits& limits) {
    if (WatchCache* cache = caches.Of(info)) return cache;
    if (!info.IsCustom()) {
      return Error(Code::kInternal, fmt::format("{} is not a stored resource", info.resource));
    }
    // One at a time: requests for a new resource come in crowds.
    MutexLock lock(fill_mutex);
    CacheSlot& slot = caches.SlotFor(info);
    if (!slot.filled()) {
      KEELSON_ASSIGN_OR_RETURN(StoredObjects all, ListStored(*client, decoder, info, 0, limits));
      slot.Fill(std::move(all));
    }
    return &slot.cache();
  }

  // Waits until the caches are as fresh as the request asks for; "" means as fresh as etcd is now.
  Result<> WaitUntilFresh(const api::ResourceInfo& info, std::string_view resource_version,
                          const Limits& limits) {
    if (resource_version == "0") return {};
    const SteadyTime begin = SteadyTime::clock::now();
    Result<> fresh = AwaitRevision(resource_version, limits);
    ObserveReadWait(info, SteadyTime::clock::now() - begin);
    if (resource_version.empty()) CountConsistentRead(info, fresh.has_value());
    return fresh;
  }
  Result<> AwaitRevision(std::string_view resource_version, const Limits& limits) {
    int64_t wanted = 0;
    if (resource_version.empty()) {
      KEELSON_ASSIGN_OR_RETURN(wanted, gate.GetCurrentRevision(limits));
    } else {
      KEELSON_ASSIGN_OR_RETURN(wanted, ParseRevision(resource_version));
    }
    return gate.WaitUntilFresh(wanted, limits);
  }

  // Bookmarks and upkeep of the caches, until `stop`.
  void Tick(std::stop_token stop);
  Result<ListResult> ListAt(WatchCache& cache, const api::ResourceInfo& info, const ListRequest& request,
                            int64_t revision, std::string start, bool continued, const Limits& limits);
  Result<ListResult> Continue(WatchCache& cache, const api::ResourceInfo& info, const ListRequest& request,
                              const Limits& limits);
  Result<ListResult> One(WatchCache& cache, const api::ResourceInfo& info, const ListRequest& request,
                         const Limits& limits);
  Result<ListResult> FromPage(WatchCache::Page page, const api::ResourceInfo& info,
                              const ListRequest& request, const Limits& limits);
  // kGone when etcd has compacted `revision`.
  Result<> CheckKept(const api::ResourceInfo& info, int64_t revision, const Limits& limits);
};

}  // namespace keelson::storage
