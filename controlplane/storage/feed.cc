#include "controlplane/storage/feed.h"

#include <algorithm>

#include "controlplane/storage/cache_meters.h"
#include "controlplane/storage/convert.h"
#include "lib/base/log.h"

namespace keelson::storage {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kFirstBackoff{50}, kLastBackoff{5000};
constexpr int64_t kPage = 500;

void Wait(milliseconds time, const std::stop_token& stop) {
  Mutex mutex;
  CondVar wake;
  MutexLock lock(mutex);
  wake.wait_for(mutex, stop, time, [] { return false; });
}

// Keys of a resource look like "namespace/name" or "name"; anything else under its prefix is not ours.
bool IsKeyOf(const api::ResourceInfo& info, std::string_view key) {
  return !key.empty() && std::count(key.begin(), key.end(), '/') == (info.namespaced ? 1 : 0);
}

}  // namespace

Caches::Caches(ResourceCache::Limits limits, Clock& clock) {
  for (const api::ResourceInfo& info : api::Resources()) {
    if (info.etcd_prefix.empty() || &StoredAs(info) != &info) continue;
    by_prefix_.emplace(info.etcd_prefix, std::make_unique<ResourceCache>(info, limits, clock));
  }
}

ResourceCache* Caches::Of(const api::ResourceInfo& info) const {
  auto found = by_prefix_.find(info.etcd_prefix);
  return found == by_prefix_.end() ? nullptr : found->second.get();
}

ResourceCache* Caches::Route(std::string_view etcd_key, std::string_view& key) const {
  auto after = by_prefix_.upper_bound(etcd_key);
  if (after == by_prefix_.begin()) return nullptr;
  const auto& [prefix, cache] = *std::prev(after);
  if (etcd_key.substr(0, prefix.size()) != prefix) return nullptr;
  key = etcd_key.substr(prefix.size());
  return IsKeyOf(cache->info(), key) ? cache.get() : nullptr;
}

void Caches::ForEach(const std::function<void(ResourceCache&)>& each) const {
  for (const auto& [prefix, cache] : by_prefix_) each(*cache);
}

// null: left out, for nobody can read it.
Result<ObjectPtr> Feed::Read(const api::ResourceInfo& info, std::string_view key, const etcd::KeyValue& kv) {
  Result<ObjectPtr> object = opener_.OpenNewest(info, key, kv);
  if (object) return object;
  CountDecodeError(info);
  log::Warn("Cannot read a stored object", {{"key", kv.key}, {"error", object.error()}});
  if (object.error().Is(Code::kUnavailable)) return object;
  return ObjectPtr();
}

Result<> Feed::LoadOne(ResourceCache& cache, int64_t revision, std::stop_token stop) {
  const api::ResourceInfo& info = cache.info();
  std::string next(info.etcd_prefix);
  etcd::RangeOptions options;
  options.end = etcd::PrefixEnd(next);
  options.limit = kPage;
  options.revision = revision;
  std::vector<ObjectPtr> objects;
  StorageList list(info);
  while (true) {
    ASSIGN_OR_RETURN(etcd::RangeResult page, client_.Range(next, options, {SteadyTime::max(), stop}));
    list.fetched += page.kvs.size();
    for (const etcd::KeyValue& kv : page.kvs) {
      std::string_view key = std::string_view(kv.key).substr(info.etcd_prefix.size());
      if (!IsKeyOf(info, key)) continue;
      ASSIGN_OR_RETURN(ObjectPtr object, Read(info, key, kv));
      if (object) objects.push_back(std::move(object));
    }
    if (!page.more || page.kvs.empty()) break;
    next = page.kvs.back().key + '\0';
  }
  list.evaluated = list.fetched;
  list.returned = objects.size();
  cache.Reset(std::move(objects), revision);
  return {};
}

Result<int64_t> Feed::Load(std::stop_token stop) {
  opener_.ForgetAll();
  ASSIGN_OR_RETURN(int64_t revision, client_.Revision({SteadyTime::max(), stop}));
  Result<> failed;
  caches_.ForEach([&](ResourceCache& cache) {
    if (failed) failed = LoadOne(cache, revision, stop);
  });
  if (!failed) return failed.error();
  return revision;
}

void Feed::Apply(etcd::WatchBatch batch) {
  {
    MutexLock lock(mutex_);
    if (reload_) return;  // one before was not applied
  }
  size_t i = 0;
  while (i < batch.events.size()) {
    const int64_t revision = batch.events[i].kv.mod_revision;
    std::map<ResourceCache*, std::vector<ResourceCache::Update>> updates;
    for (; i < batch.events.size() && batch.events[i].kv.mod_revision == revision; ++i) {
      const auto& event = batch.events[i];
      std::string_view key;
      ResourceCache* cache = caches_.Route(event.kv.key, key);
      if (!cache) continue;
      CountStorageEvent(cache->info());
      ObjectPtr object;
      if (event.deleted) {
        opener_.Forget(event.kv.key);
      } else if (Result<ObjectPtr> read = Read(cache->info(), key, event.kv)) {
        object = std::move(*read);
      } else {
        // What it takes to read it is away. All is read again once it is back; until then nobody is told
        // that it is gone.
        return Reload();
      }
      const bool unreadable = !event.deleted && !object;
      updates[cache].push_back({std::string(key), std::move(object), unreadable});
    }
    for (auto& [cache, list] : updates) cache->Apply(std::move(list), revision);
  }
  gate_.Reach(batch.revision);
}

void Feed::Reload() {
  MutexLock lock(mutex_);
  reload_ = true;
  watch_.request_stop();
}

Error Feed::Watch(std::stop_token stop) {
  std::stop_source source;
  {
    MutexLock lock(mutex_);
    if (reload_) return Error(Code::kCancelled, "to be read again");
    watch_ = source;
  }
  std::stop_callback on_stop(stop, [&source] { source.request_stop(); });
  return client_.Watch(
      std::string(1, '\0'), std::string(1, '\0'), gate_.reached() + 1, [this] { backoff_ = kFirstBackoff; },
      [this](etcd::WatchBatch batch) { Apply(std::move(batch)); }, source.get_token());
}

void Feed::Run(std::stop_token stop, const std::function<void()>& ready) {
  bool was_ready = false, loaded = false;
  backoff_ = kFirstBackoff;
  while (!stop.stop_requested()) {
    Error ended(Code::kUnavailable, "");
    if (!loaded) {
      {
        MutexLock lock(mutex_);
        reload_ = false;
      }
      if (Result<int64_t> revision = Load(stop)) {
        loaded = true;
        gate_.Reach(*revision);
        if (!was_ready) ready();
        was_ready = true;
      } else {
        ended = revision.error();
      }
    }
    if (loaded) {
      ended = Watch(stop);
      // An etcd restored from a backup is behind us: all that we know is void.
      Result<int64_t> now = client_.Revision({SteadyTime::max(), stop});
      if (ended.Is(Code::kGone) || (now && *now < gate_.reached())) loaded = false;
      MutexLock lock(mutex_);
      if (reload_) loaded = false;
    }
    if (stop.stop_requested()) break;
    log::Warn("The watch on etcd was interrupted", {{"error", ended}});
    Wait(backoff_, stop);
    backoff_ = std::min(backoff_ * 2, kLastBackoff);
  }
  caches_.ForEach([](ResourceCache& cache) {
    cache.EndWatches(Error(Code::kUnavailable, "the server is shutting down"));
  });
}

}  // namespace keelson::storage
