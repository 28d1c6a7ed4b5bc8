#include "lib/client/informer.h"

#include <atomic>
#include <map>
#include <optional>
#include <thread>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "lib/api/meta.h"
#include "lib/base/log.h"
#include "lib/client/backoff.h"
#include "lib/client/store.h"
#include "lib/client/wire.h"

namespace keelson::client {

namespace {

bool IsPreRelease(std::string_view version) {
  return version.find("alpha") != std::string_view::npos || version.find("beta") != std::string_view::npos;
}

}  // namespace

struct InformerBase::Impl {
  Impl(RestClient a, const api::ResourceInfo& i, ListOptions o, std::string n, Clock& c)
      : api(std::move(a)),
        info(i),
        options(std::move(o)),
        ns(std::move(n)),
        clock(c),
        store(options.metadata_only ? metav1::PartialObjectMetadata::default_instance() : info.prototype()) {}

  RestClient api;
  const api::ResourceInfo& info;
  const ListOptions options;
  const std::string ns;
  Clock& clock;
  ObjectStore store;
  std::optional<std::unordered_map<std::string, std::string>> versions;  // by key, used in place of the store
  std::vector<std::function<void(const RawChange&)>> handlers;
  std::atomic<bool> synced{false};
  std::string resource_version;  // of the last list or event; only the informer's thread uses it

  void Notify(const RawChange& change) {
    for (const auto& handler : handlers) handler(change);
  }

  Result<std::string> Trim(std::string_view raw) const { return TrimObject(raw, options.metadata_only); }

  Result<Object> Decode(const std::string& kept) const {
    if (Object object = store.Decode(kept)) return object;
    return Error(Code::kInternal, "undecodable object from the API server");
  }

  // Stores one added or changed object, and returns it.
  Result<Object> Apply(std::string_view raw) {
    KEELSON_ASSIGN_OR_RETURN(std::string kept, Trim(raw));
    KEELSON_ASSIGN_OR_RETURN(Object object, Decode(kept));
    std::string key = api::KeyOf(*object);
    if (versions) {
      const std::string& version = api::Meta(*object).resource_version();
      if (std::string& seen = (*versions)[key]; std::exchange(seen, version) == version) return object;
      Notify({key, nullptr, object});
      return object;
    }
    if (store.Holds(key, kept)) return object;
    Object before = store.Put(key, std::move(kept), object);
    Notify({key, before, object});
    return object;
  }

  void Forget(const std::string& key, Object last) {
    if (versions) {
      if (versions->erase(key) > 0) Notify({key, std::move(last), nullptr});
      return;
    }
    Object before = store.Remove(key);
    if (!before) return;
    Notify({key, last ? std::move(last) : before, nullptr});
  }

  std::vector<std::string> Keys() const {
    if (!versions) return store.Keys();
    std::vector<std::string> out;
    for (const auto& [key, version] : *versions) out.push_back(key);
    return out;
  }

  // Lists, and makes the store equal to the list.
  Result<> Relist(const RestClient& client) {
    std::unordered_set<std::string> seen;
    std::string version;
    KEELSON_RETURN_IF_ERROR(
        client.ListEach(info, ns, options, &version, [&](std::string_view raw) -> Result<> {
          KEELSON_ASSIGN_OR_RETURN(Object object, Apply(raw));
          seen.insert(api::KeyOf(*object));
          return {};
        }));
    for (const std::string& key : Keys()) {
      if (!seen.count(key)) Forget(key, nullptr);
    }
    resource_version = version;
    return {};
  }

  Result<> Handle(const WatchEvent& event) {
    Object object;
    if (event.type == WatchEvent::Type::kAdded || event.type == WatchEvent::Type::kModified) {
      KEELSON_ASSIGN_OR_RETURN(object, Apply(event.raw));
    } else {
      KEELSON_ASSIGN_OR_RETURN(std::string kept, Trim(event.raw));
      KEELSON_ASSIGN_OR_RETURN(object, Decode(kept));
    }
    resource_version = api::Meta(*object).resource_version();
    if (event.type == WatchEvent::Type::kDeleted) Forget(api::KeyOf(*object), object);
    return {};
  }

  // Watches until the stream ends or fails. `opened`: it was established; `events` counts what arrived.
  Result<> WatchOnce(const RestClient& client, std::stop_token stop, bool& opened, int& events) {
    ListOptions from = options;
    from.resource_version = resource_version;
    KEELSON_ASSIGN_OR_RETURN(std::unique_ptr<WatchStream> stream, client.Watch(info, ns, from));
    opened = true;
    for (;;) {
      KEELSON_ASSIGN_OR_RETURN(WatchEvent event, stream->Next(stop));
      ++events;
      KEELSON_RETURN_IF_ERROR(Handle(event));
    }
  }

  void Run(std::stop_token stop, const std::function<void()>& on_synced);
};

void InformerBase::Impl::Run(std::stop_token stop, const std::function<void()>& on_synced) {
  const RestClient client = api.With(stop);
  ReconnectBackoff backoff(clock);
  auto failed = [&](const Error& error, std::string_view what, log::Level level = log::Level::kWarn) {
    if (stop.stop_requested()) return false;
    log::Write(level, what, {{"resource", info.GroupResource()}, {"err", error}});
    return SleepFor(clock, backoff.Next(), stop);
  };
  bool listed = false;
  while (!stop.stop_requested()) {
    if (!listed) {
      const Result<> result = Relist(client);
      // A server need not serve beta resources: then there are no objects, and nothing waits for them. Custom resources
      // come with their definition.
      const bool unserved = !result && result.error().Is(Code::kNotFound);
      const bool optional = unserved && IsPreRelease(info.version);
      if ((result || optional) && !synced.exchange(true) && on_synced) on_synced();
      if (optional || (unserved && info.IsCustom())) {
        if (!failed(result.error(), "Not served, will be asked for again", log::Level::kDebug)) return;
        continue;
      }
      if (!result) {
        if (!failed(result.error(), "Listing failed, will be retried")) return;
        continue;
      }
      listed = true;
    }
    bool opened = false;
    int events = 0;
    Result<> result = WatchOnce(client, stop, opened, events);
    if (stop.stop_requested()) return;
    if (events > 0) backoff.Reset();
    switch (result.error().code()) {
      case Code::kUnavailable:
      case Code::kTimeout:
      case Code::kTooManyRequests:
        // The server is down or has ended the stream: continue from the last version. A stream that
        // delivered events ended normally, so open the next one at once.
        if (events == 0 && !failed(result.error(), "Watch ended, will be opened again",
                                   opened ? log::Level::kDebug : log::Level::kWarn)) {
          return;
        }
        break;
      case Code::kGone:
        listed = false;
        if (events == 0 && !failed(result.error(), "Watch is too old, will list again", log::Level::kDebug)) {
          return;
        }
        break;
      default:
        listed = false;
        if (!failed(result.error(), "Watch failed, will list again")) return;
    }
  }
}

InformerBase::InformerBase(RestClient api, const api::ResourceInfo& info, ListOptions options, std::string ns,
                           Clock& clock)
    : impl_(std::make_unique<Impl>(std::move(api), info, std::move(options), std::move(ns), clock)) {}

InformerBase::~InformerBase() = default;

void InformerBase::AddRawHandler(std::function<void(const RawChange&)> handler) {
  impl_->handlers.push_back(std::move(handler));
}
void InformerBase::AddRawIndex(std::string name, IndexFunction function) {
  impl_->store.AddIndex(std::move(name), std::move(function));
}
void InformerBase::KeepNoObjects() { impl_->versions.emplace(); }
InformerBase::Object InformerBase::RawGet(std::string_view key) const { return impl_->store.Get(key); }
std::vector<InformerBase::Object> InformerBase::RawList() const { return impl_->store.List(); }
std::vector<InformerBase::Object> InformerBase::RawByIndex(std::string_view index,
                                                           std::string_view value) const {
  return impl_->store.ByIndex(index, value);
}
std::vector<std::string> InformerBase::Keys() const { return impl_->store.Keys(); }
size_t InformerBase::size() const { return impl_->store.size(); }
bool InformerBase::synced() const { return impl_->synced; }
const api::ResourceInfo& InformerBase::info() const { return impl_->info; }
void InformerBase::Run(std::stop_token stop, const std::function<void()>& on_synced) {
  impl_->Run(std::move(stop), on_synced);
}

struct InformerFactory::Impl {
  using Id = std::tuple<std::string, std::string, std::string, std::string, bool>;
  Mutex mutex;
  std::map<Id, std::unique_ptr<InformerBase>> informers KEELSON_GUARDED_BY(mutex);
};

InformerFactory::InformerFactory(RestClient api, Clock& clock)
    : api_(std::move(api)), clock_(clock), impl_(std::make_unique<Impl>()) {}

InformerFactory::~InformerFactory() = default;

InformerBase& InformerFactory::Find(const api::ResourceInfo& info, const ListOptions& selection,
                                    const std::string& ns,
                                    const std::function<std::unique_ptr<InformerBase>()>& make) {
  MutexLock lock(impl_->mutex);
  auto& informer =
      impl_->informers[{info.GroupResource() + "/" + std::string(info.version), ns, selection.label_selector,
                        selection.field_selector, selection.metadata_only}];
  if (!informer) informer = make();
  return *informer;
}

Informer<metav1::PartialObjectMetadata>& InformerFactory::GetMetadata(const api::ResourceInfo& info) {
  using MetadataInformer = Informer<metav1::PartialObjectMetadata>;
  ListOptions selection;
  selection.metadata_only = true;
  return static_cast<MetadataInformer&>(Find(info, selection, "", [&] {
    return std::make_unique<MetadataInformer>(api_, info, selection, "", clock_);
  }));
}

size_t InformerFactory::size() const {
  MutexLock lock(impl_->mutex);
  return impl_->informers.size();
}

Result<> InformerFactory::Run(std::stop_token stop, const std::function<void()>& ready) {
  std::vector<InformerBase*> all;
  {
    MutexLock lock(impl_->mutex);
    for (auto& [id, informer] : impl_->informers) all.push_back(informer.get());
  }
  std::atomic<size_t> missing = all.size();
  auto one_synced = [&] {
    if (missing.fetch_sub(1) == 1 && ready) ready();
  };
  if (all.empty() && ready) ready();
  Mutex mutex;
  CondVar ended;
  std::vector<std::jthread> threads;
  threads.reserve(all.size());
  for (InformerBase* informer : all) threads.emplace_back([&, informer] { informer->Run(stop, one_synced); });
  threads.clear();  // joins: each runs until the stop
  // Without any informer this service still runs until the stop.
  std::stop_callback wake(stop, [&] {
    MutexLock lock(mutex);
    ended.notify_all();
  });
  MutexLock lock(mutex);
  while (!stop.stop_requested()) ended.wait(mutex);
  return {};
}

}  // namespace keelson::client
