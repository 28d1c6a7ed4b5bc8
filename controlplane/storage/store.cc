#include "controlplane/storage/store.h"

#include <malloc.h>

#include <atomic>
#include <charconv>
#include <thread>

#include <fmt/format.h>

#include "controlplane/etcd/compactor.h"
#include "controlplane/etcd/lease_pool.h"
#include "controlplane/storage/continue_token.h"
#include "controlplane/storage/convert.h"
#include "controlplane/storage/converting_sink.h"
#include "controlplane/storage/etcd_metrics.h"
#include "controlplane/storage/reflector.h"
#include "controlplane/storage/stored_value_decoder.h"
#include "controlplane/storage/watch_cache_metrics.h"
#include "controlplane/storage/watch_caches.h"
#include "lib/api/codec/codec.h"
#include "lib/api/meta.h"
#include "lib/base/log.h"

namespace keelson::storage {
namespace {

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

Error ListExpired() { return Error(Code::kGone, "The resourceVersion for the provided list is too old."); }

// The caller adds a token that continues with the present objects (InconsistentToken()).
Error ContinueExpired() {
  return Error(
      Code::kGone,
      "The provided continue parameter is too old to display a consistent list result. You can start "
      "a new list without the continue parameter, or use the continue token in this response to "
      "retrieve the remainder of the results. Continuing with the provided token results in an "
      "inconsistent list - objects that were created, modified, or deleted between the time the "
      "first chunk was returned and now may show up in the list.");
}

// The owner's handle of a watch.
class Handle : public WatchHandle {
 public:
  Handle(WatchCache& cache, std::shared_ptr<CacheWatcher> watcher, RevisionGate& gate)
      : cache_(cache), watcher_(std::move(watcher)), gate_(gate) {}
  ~Handle() override {
    cache_.RemoveWatcher(watcher_);
    watcher_->Detach();
  }
  void RequestBookmark() override { watcher_->AddBookmark(gate_.reached()); }

 private:
  WatchCache& cache_;
  const std::shared_ptr<CacheWatcher> watcher_;
  RevisionGate& gate_;
};

}  // namespace

struct Store::Impl {
  std::shared_ptr<etcd::Client> client;
  Options options;
  Clock& clock;
  etcd::LeasePool leases;
  WatchCaches caches;
  RevisionGate gate;
  StoredValueDecoder decoder;
  std::atomic<bool> ready{false};
  Mutex fill_mutex;
  static constexpr int kConversions = 8;
  WorkerPool conversions{kConversions};  // of watches

  Impl(std::shared_ptr<etcd::Client> c, Options o, Clock& k)
      : client(std::move(c)),
        options(std::move(o)),
        clock(k),
        leases(*client, clock),
        caches({options.history_events, options.history_bytes}, clock),
        gate(*client),
        decoder(options.encryption) {}

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

  void Tick(std::stop_token stop) {
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

// ---- reads ----

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

Result<ListResult> Store::Impl::FromPage(WatchCache::Page page, const api::ResourceInfo& info,
                                         const ListRequest& request, const Limits& limits) {
  ListResult result;
  result.revision = page.revision;
  if (page.more && !page.items.empty()) {
    std::string_view last = page.items.back()->key();
    if (!request.ns.empty()) last.remove_prefix(request.ns.size() + 1);
    result.continue_token = Encode({page.revision, std::string(last) + '\0'});
    // With a selector the number of remaining matches is unknown.
    if (request.predicate.IsEverything()) result.remaining = page.left;
  }
  result.items = std::move(page.items);
  KEELSON_RETURN_IF_ERROR(ConvertAll(result.items, info, limits));
  return result;
}

// A list as of an exact revision, from etcd's history.
Result<ListResult> Store::Impl::ListAt(WatchCache& cache, const api::ResourceInfo& info,
                                       const ListRequest& request, int64_t revision, std::string start,
                                       bool continued, const Limits& limits) {
  std::string prefix(info.etcd_prefix);
  if (!request.ns.empty()) prefix += std::string(request.ns) + "/";
  etcd::RangeOptions at;
  at.end = etcd::PrefixEnd(prefix);
  at.revision = revision;
  at.limit = request.limit > 0 ? request.limit : 500;
  std::string next = prefix + start;
  WatchCache::Page page;
  page.revision = revision;
  StorageList list(info);
  while (true) {
    Result<etcd::RangeResult> range = Measured("list", info, [&] { return client->Range(next, at, limits); });
    if (!range && range.error().Is(Code::kGone)) return continued ? ContinueExpired() : ListExpired();
    if (!range) return range.error();
    list.fetched += range->kvs.size();
    size_t i = 0;
    for (; i < range->kvs.size(); ++i) {
      if (request.limit > 0 && static_cast<int64_t>(page.items.size()) == request.limit) break;
      const etcd::KeyValue& kv = range->kvs[i];
      std::string_view key = std::string_view(kv.key).substr(info.etcd_prefix.size());
      ObjectPtr object = cache.Get(key);
      if (!object || object->revision() != kv.mod_revision) {
        KEELSON_ASSIGN_OR_RETURN(object, decoder.Decode(cache.info(), key, kv));
      }
      if (object->Matches(request.predicate.labels, request.predicate.fields)) {
        page.items.push_back(std::move(object));
      }
    }
    list.evaluated += i;
    list.returned = page.items.size();
    page.left = range->count - static_cast<int64_t>(i);
    page.more = page.left > 0;
    bool full = request.limit > 0 && static_cast<int64_t>(page.items.size()) == request.limit;
    if (full || !range->more || range->kvs.empty()) break;
    next = range->kvs.back().key + '\0';
  }
  return FromPage(std::move(page), info, request, limits);
}

Result<> Store::Impl::CheckKept(const api::ResourceInfo& info, int64_t revision, const Limits& limits) {
  etcd::RangeOptions at;
  at.revision = revision;
  at.count_only = true;
  Result<etcd::RangeResult> range =
      Measured("list", info, [&] { return client->Range(info.etcd_prefix, at, limits); });
  if (range) return {};
  return range.error().Is(Code::kGone) ? ContinueExpired() : range.error();
}

Result<ListResult> Store::Impl::Continue(WatchCache& cache, const api::ResourceInfo& info,
                                         const ListRequest& request, const Limits& limits) {
  Result<ContinueToken> token = DecodeContinue(request.continue_token);
  if (!token) return Error(Code::kBadRequest, "invalid continue token: " + token.error().message());
  if (!request.resource_version.empty() && request.resource_version != "0") {
    return Error(Code::kBadRequest, "specifying resource version is not allowed when using continue");
  }
  std::string prefix = request.ns.empty() ? "" : std::string(request.ns) + "/";
  bool anything = token->revision < 0;
  if (anything) {
    KEELSON_RETURN_IF_ERROR(WaitUntilFresh(info, "", limits));
  } else {
    KEELSON_RETURN_IF_ERROR(gate.WaitUntilFresh(token->revision, limits));
  }
  KEELSON_RETURN_IF_ERROR(decoder.CheckList(info, request.ns));
  int64_t reached = gate.reached();
  if (anything) {
    return FromPage(cache.List(request.ns, prefix + token->start, request.predicate, request.limit, reached),
                    info, request, limits);
  }
  // While nothing has changed since the first page, the cache is that page's snapshot. It expires when etcd
  // compacts the revision, as clients expect.
  if (cache.last_change() <= token->revision) {
    WatchCache::Page page =
        cache.List(request.ns, prefix + token->start, request.predicate, request.limit, reached);
    if (page.revision == reached && cache.last_change() <= token->revision) {
      KEELSON_RETURN_IF_ERROR(CheckKept(info, token->revision, limits));
      page.revision = token->revision;
      return FromPage(std::move(page), info, request, limits);
    }
  }
  return ListAt(cache, info, request, token->revision, token->start, true, limits);
}

Result<ListResult> Store::Impl::One(WatchCache& cache, const api::ResourceInfo& info,
                                    const ListRequest& request, const Limits& limits) {
  ListResult result;
  std::string key = api::KeyOf(request.ns, request.name);
  ObjectPtr object;
  if (request.match == "Exact") {
    KEELSON_ASSIGN_OR_RETURN(result.revision, ParseRevision(request.resource_version));
    KEELSON_RETURN_IF_ERROR(gate.WaitUntilFresh(result.revision, limits));
    etcd::RangeOptions at;
    at.revision = result.revision;
    Result<etcd::RangeResult> range =
        Measured("get", info, [&] { return client->Range(std::string(info.etcd_prefix) + key, at, limits); });
    if (!range) return range.error().Is(Code::kGone) ? ListExpired() : range.error();
    if (!range->kvs.empty()) {
      KEELSON_ASSIGN_OR_RETURN(object, decoder.Decode(cache.info(), key, range->kvs[0]));
    }
  } else {
    KEELSON_RETURN_IF_ERROR(WaitUntilFresh(info, request.resource_version, limits));
    result.revision = gate.reached();
    object = cache.Get(key);
    if (!object) KEELSON_RETURN_IF_ERROR(decoder.CheckKey(std::string(info.etcd_prefix) + key));
    if (object) result.revision = std::max(result.revision, object->revision());
  }
  if (object && object->Matches(request.predicate.labels, request.predicate.fields)) {
    result.items.push_back(std::move(object));
  }
  KEELSON_RETURN_IF_ERROR(ConvertAll(result.items, info, limits));
  return result;
}

Result<ListResult> Store::List(const api::ResourceInfo& info, const ListRequest& request,
                               const Limits& limits) {
  KEELSON_ASSIGN_OR_RETURN(WatchCache * cache, impl_->CacheOf(info, limits));
  if (Result<int64_t> revision = ParseRevision(request.resource_version); !revision) {
    return revision.error().Wrap("invalid resource version");
  }
  if (!request.name.empty()) return impl_->One(*cache, info, request, limits);
  if (!request.continue_token.empty()) return impl_->Continue(*cache, info, request, limits);
  bool exact = request.match == "Exact";
  // Without resourceVersionMatch a paged list from a version means Exact.
  if (request.match.empty() && request.limit > 0 && !request.resource_version.empty() &&
      request.resource_version != "0") {
    exact = true;
  }
  if (exact) {
    KEELSON_ASSIGN_OR_RETURN(int64_t revision, ParseRevision(request.resource_version));
    KEELSON_RETURN_IF_ERROR(impl_->gate.WaitUntilFresh(revision, limits));
    return impl_->ListAt(*cache, info, request, revision, "", false, limits);
  }
  KEELSON_RETURN_IF_ERROR(impl_->WaitUntilFresh(info, request.resource_version, limits));
  // A list must not look complete when it is not. Checked once the caches are as fresh as the request asks for.
  KEELSON_RETURN_IF_ERROR(impl_->decoder.CheckList(info, request.ns));
  // At "0" the limit is ignored, as upstream does: such lists are to be cheap.
  int64_t limit = request.resource_version == "0" ? 0 : request.limit;
  return impl_->FromPage(cache->List(request.ns, "", request.predicate, limit, impl_->gate.reached()), info,
                         request, limits);
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
    cache->TerminateAllWatchers(Error(Code::kGone, "the resource is not served any more"));
  }
}

// ---- writes ----

Result<ObjectPtr> Store::Put(const api::ResourceInfo& info, std::string_view key, const api::Message& message,
                             int64_t expected, std::chrono::seconds ttl, Conflict& conflict,
                             const Limits& limits) {
  const api::ResourceInfo& stored = StoredAs(info);
  std::unique_ptr<api::Message> converted;
  if (&stored != &info) {
    KEELSON_ASSIGN_OR_RETURN(converted, ConvertMessage(info, message, stored, limits));
  }
  const api::Message& kept = converted ? *converted : message;
  const std::string etcd_key = std::string(info.etcd_prefix) + std::string(key);
  const bool as_json = impl_->options.json || info.IsCustom();
  std::string value = as_json ? api::EncodeJson(kept, stored.Gvk()) : api::EncodeProtobuf(kept, stored.Gvk());
  if (TransformerPtr transformer = impl_->decoder.TransformerOf(stored)) {
    Result<std::string> sealed = transformer->ToStorage(value, etcd_key);
    if (!sealed) return TransformError(etcd_key, sealed.error());
    value = std::move(*sealed);
  }
  int64_t lease = 0;
  if (ttl.count() > 0) {
    KEELSON_ASSIGN_OR_RETURN(lease, impl_->leases.LeaseFor(ttl, limits));
  }
  KEELSON_ASSIGN_OR_RETURN(etcd::TxnResult txn, Measured(expected == 0 ? "create" : "update", info, [&] {
                             return impl_->client->PutIf(etcd_key, value, expected, lease, limits);
                           }));
  // The object as readers will see it: a conversion between versions may change it.
  if (txn.succeeded) {
    const ObjectPtr written = Object::FromMessage(stored, kept, txn.revision);
    return NeedsWebhook(stored, info) ? written->As(info, message) : written->In(info);
  }
  conflict.current = nullptr;
  if (txn.current) {
    Result<ObjectPtr> current = impl_->decoder.Decode(stored, key, *txn.current);
    if (current) current = ConvertOne(std::move(*current), info, limits);
    if (current) {
      conflict.current = std::move(*current);
    } else if (expected != 0) {
      return current.error();
    }
    // An object that cannot be read makes a create fail all the same.
  }
  return Error(Code::kConflict, "the stored object is another one");
}

bool Store::IsStale(const api::ResourceInfo& info, const Object& object, const Limits& limits) {
  if (info.IsCustom() ? object.stored_as() && object.stored_as() != &StoredAs(info)
                      : object.stored_as_json() != impl_->options.json) {
    return true;
  }
  TransformerPtr transformer = impl_->decoder.TransformerOf(StoredAs(info));
  // Without a configuration no value is stale.
  if (!transformer) return false;
  std::string etcd_key = std::string(info.etcd_prefix) + object.key();
  Result<etcd::RangeResult> range =
      Measured("get", info, [&] { return impl_->client->Range(etcd_key, {}, limits); });
  if (!range || range->kvs.empty() || range->kvs[0].mod_revision != object.revision()) return false;
  Result<Opened> opened = transformer->FromStorage(range->kvs[0].value, etcd_key);
  return opened && opened->stale;
}

Result<int64_t> Store::Delete(const api::ResourceInfo& info, std::string_view key, int64_t expected,
                              Conflict& conflict, const Limits& limits) {
  KEELSON_ASSIGN_OR_RETURN(etcd::TxnResult txn, Measured("delete", info, [&] {
                             return impl_->client->DeleteIf(std::string(info.etcd_prefix) + std::string(key),
                                                            expected, limits);
                           }));
  if (txn.succeeded) return txn.revision;
  conflict.current = nullptr;
  if (txn.current) {
    KEELSON_ASSIGN_OR_RETURN(ObjectPtr current, impl_->decoder.Decode(StoredAs(info), key, *txn.current));
    KEELSON_ASSIGN_OR_RETURN(conflict.current, ConvertOne(std::move(current), info, limits));
  }
  return Error(Code::kConflict, "the stored object is another one");
}

Result<bool> Store::DeleteUnreadable(const api::ResourceInfo& info, std::string_view key,
                                     const Limits& limits) {
  const std::string etcd_key = std::string(info.etcd_prefix) + std::string(key);
  while (true) {
    KEELSON_ASSIGN_OR_RETURN(etcd::RangeResult range, Measured("get", info, [&] {
                               return impl_->client->Range(etcd_key, {}, limits);
                             }));
    if (range.kvs.empty()) return false;
    Result<ObjectPtr> object = impl_->decoder.Decode(StoredAs(info), key, range.kvs[0]);
    if (object) return false;
    if (!object.error().Is(Code::kInternal)) return object.error();
    KEELSON_ASSIGN_OR_RETURN(etcd::TxnResult txn, Measured("delete", info, [&] {
                               return impl_->client->DeleteIf(etcd_key, range.kvs[0].mod_revision, limits);
                             }));
    if (!txn.succeeded) continue;  // the object has changed meanwhile: try again
    log::Warn("Deleted a stored object that could not be read", {{"key", etcd_key}, {"err", object.error()}});
    return true;
  }
}

}  // namespace keelson::storage
