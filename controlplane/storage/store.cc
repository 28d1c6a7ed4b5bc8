#include "controlplane/storage/store.h"

#include <malloc.h>

#include <charconv>
#include <thread>

#include <fmt/format.h>

#include "controlplane/etcd/compactor.h"
#include "controlplane/storage/convert.h"
#include "controlplane/storage/converting_sink.h"
#include "controlplane/storage/etcd_metrics.h"
#include "controlplane/storage/store_impl.h"

namespace keelson::storage {
namespace {

// The owner's handle of a watch.
class Handle : public WatchHandle {
 public:
  Handle(WatchCache& cache, std::shared_ptr<CacheWatcher> watcher, RevisionGate& gate)
      : cache_(cache), watcher_(std::move(watcher)), gate_(gate) {}
  ~Handle() override {
    cache_.RemoveWatcher(watcher_);
    watcher_->Detach();
  }
  void RequestBookmark() override { cache_.SendBookmark(watcher_, gate_.reached()); }

 private:
  WatchCache& cache_;
  const std::shared_ptr<CacheWatcher> watcher_;
  RevisionGate& gate_;
};

}  // namespace

Result<int64_t> ParseRevision(std::string_view text) {
  if (text.empty()) return 0;
  int64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  bool all = end == text.data() + text.size();
  if (error == std::errc() && all && value >= 0) return value;
  bool too_large = error == std::errc::result_out_of_range && all && text.front() != '-';
  return Error(Code::kBadRequest,
               fmt::format("resourceVersion: Invalid value: \"{}\": strconv.ParseUint: parsing \"{}\": {}",
                           text, text, too_large ? "value out of range" : "invalid syntax"));
}

void Store::Impl::Tick(std::stop_token stop) {
  Mutex mutex;
  CondVar wake;
  std::stop_callback on_stop(stop, [&] {
    MutexLock lock(mutex);
    wake.notify_all();
  });
  while (true) {
    SteadyTime next = clock.SteadyNow() + options.bookmark_period;
    {
      MutexLock lock(mutex);
      while (!stop.stop_requested() && clock.SteadyNow() < next) clock.WaitUntil(mutex, wake, next);
    }
    if (stop.stop_requested()) return;
    int64_t revision = gate.reached();
    caches.ForEach([&](WatchCache& cache) {
      cache.DispatchBookmarks(revision);
      cache.DropIdle();
    });
    // Gives memory that a burst of requests has left free back to the system.
    ::malloc_trim(0);
  }
}

Store::Store(std::shared_ptr<etcd::Client> client, Options options, Clock& clock)
    : impl_(std::make_unique<Impl>(std::move(client), std::move(options), clock)) {}

Store::~Store() = default;

Result<> Store::Run(std::stop_token stop, const std::function<void()>& ready) {
  std::jthread ticker([this](std::stop_token own) { impl_->Tick(own); });
  std::jthread compactor;
  if (impl_->options.compact_period.count() > 0) {
    compactor = std::jthread([this](std::stop_token own) {
      etcd::Compactor(*impl_->client).Run(impl_->options.compact_period, impl_->clock, own);
    });
  }
  Reflector reflector(*impl_->client, impl_->caches, impl_->gate, impl_->decoder);
  std::jthread encryption;
  if (impl_->options.encryption) {
    encryption = std::jthread([&](std::stop_token own) {
      // New keys may decrypt values that could not be read.
      auto changed = [&] {
        if (impl_->decoder.AnyUnreadable()) reflector.Relist();
      };
      impl_->options.encryption->Run(impl_->options.reload_encryption, changed, own);
    });
  }
  reflector.Run(stop, [&] {
    impl_->ready = true;
    ready();
  });
  return {};
}

bool Store::ready() const { return impl_->ready; }
int64_t Store::revision() const { return impl_->gate.reached(); }

Result<ObjectPtr> Store::Get(const api::ResourceInfo& info, std::string_view key,
                             std::string_view resource_version, const Limits& limits) {
  KEELSON_ASSIGN_OR_RETURN(WatchCache * cache, impl_->CacheOf(info, limits));
  Result<> fresh = impl_->WaitUntilFresh(info, resource_version, limits);
  if (!fresh && !resource_version.empty()) return fresh.error();
  ObjectPtr object = fresh ? cache->Get(key) : nullptr;
  if (!object && !resource_version.empty()) {
    KEELSON_RETURN_IF_ERROR(impl_->decoder.CheckKey(std::string(info.etcd_prefix) + std::string(key)));
  } else if (!object) {
    // The cache is behind, or it has left out a value that cannot be read.
    KEELSON_ASSIGN_OR_RETURN(etcd::RangeResult range, Measured("get", info, [&] {
                               return impl_->client->Range(std::string(info.etcd_prefix) + std::string(key),
                                                           {}, limits);
                             }));
    if (range.kvs.empty()) return ObjectPtr();
    const etcd::KeyValue& kv = range.kvs[0];
    KEELSON_ASSIGN_OR_RETURN(object, impl_->decoder.Decode(cache->info(), key, kv));
  }
  return ConvertOne(std::move(object), info, limits);
}

ObjectPtr Store::Peek(const api::ResourceInfo& info, std::string_view key) const {
  WatchCache* cache = impl_->caches.Of(info);
  ObjectPtr object = cache ? cache->Get(key) : nullptr;
  return object && !NeedsWebhook(object->info(), info) ? object->In(info) : nullptr;
}

void Store::ForEach(const api::ResourceInfo& info, const std::function<void(const ObjectPtr&)>& each) const {
  if (WatchCache* cache = impl_->caches.Of(info)) cache->ForEach(each);
}

Size Store::SizeOf(const api::ResourceInfo& info) const {
  WatchCache* cache = impl_->caches.Of(info);
  return cache ? cache->size() : Size();
}

void Store::ForEachIn(const api::ResourceInfo& info, std::string_view ns,
                      const std::function<void(const ObjectPtr&)>& each) const {
  if (WatchCache* cache = impl_->caches.Of(info)) cache->ForEachIn(ns, each);
}

Result<std::unique_ptr<WatchHandle>> Store::Watch(const api::ResourceInfo& info, const WatchRequest& request,
                                                  std::shared_ptr<WatchSink> sink, const Limits& limits) {
  KEELSON_ASSIGN_OR_RETURN(WatchCache * cache, impl_->CacheOf(info, limits));
  KEELSON_ASSIGN_OR_RETURN(int64_t from, ParseRevision(request.resource_version));
  // A watch may start at a future version: its events begin there. Initial events must be as fresh as asked for.
  if (request.initial_events || request.resource_version.empty()) {
    KEELSON_RETURN_IF_ERROR(impl_->WaitUntilFresh(info, request.resource_version, limits));
  }
  if (request.initial_events || from == 0) {
    KEELSON_RETURN_IF_ERROR(impl_->decoder.CheckList(info, request.ns));
  }
  std::shared_ptr<ConvertingSink> converting;
  if (ConvertsByWebhook(info)) {
    converting = std::make_shared<ConvertingSink>(info, std::move(sink), impl_->conversions);
    sink = converting;
  }
  auto watcher = std::make_shared<CacheWatcher>(info, request, std::move(sink));
  std::unique_ptr<WatchHandle> handle = std::make_unique<Handle>(*cache, watcher, impl_->gate);
  int64_t reached = impl_->gate.reached();
  cache->AddWatcher(watcher, from == 0 ? reached : from, request.initial_events, reached);
  if (!converting) return handle;
  converting->Flush();  // initial events are delivered before this returns
  return std::unique_ptr<WatchHandle>(
      std::make_unique<ConvertingHandle>(std::move(handle), std::move(converting)));
}

Result<> Store::Ensure(const api::ResourceInfo& info, const Limits& limits) {
  KEELSON_RETURN_IF_ERROR(impl_->CacheOf(info, limits));
  return {};
}

Result<> Store::Refresh(const api::ResourceInfo& info, const Limits& limits) {
  if (!impl_->caches.Of(info)) return {};
  KEELSON_ASSIGN_OR_RETURN(StoredObjects all, ListStored(*impl_->client, impl_->decoder, info, 0, limits));
  impl_->caches.SlotFor(info).Refresh(std::move(all));
  return {};
}

void Store::EndWatches(const api::ResourceInfo& info) {
  if (WatchCache* cache = impl_->caches.Of(info)) {
    cache->TerminateAllWatchers(Error(Code::kCancelled, "the resource is not served any more"));
  }
}

RangeAllocations& Store::ranges() { return impl_->ranges; }
MasterLeases& Store::master_leases() { return impl_->master_leases; }

}  // namespace keelson::storage
