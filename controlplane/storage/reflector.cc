#include "controlplane/storage/reflector.h"

#include <algorithm>

#include "controlplane/storage/convert.h"
#include "controlplane/storage/watch_cache_metrics.h"
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

// Keys of a resource look like "namespace/name" or "name"; other keys under its prefix are not the API server's.
bool IsKeyOf(const api::ResourceInfo& info, std::string_view key) {
  return !key.empty() && std::count(key.begin(), key.end(), '/') == (info.namespaced ? 1 : 0);
}

}  // namespace

WatchCaches::WatchCaches(WatchCache::Limits limits, Clock& clock) {
  for (const api::ResourceInfo& info : api::Resources()) {
    if (info.etcd_prefix.empty() || &StoredAs(info) != &info) continue;
    by_prefix_.emplace(info.etcd_prefix, std::make_unique<WatchCache>(info, limits, clock));
  }
}

WatchCache* WatchCaches::Of(const api::ResourceInfo& info) const {
  auto found = by_prefix_.find(info.etcd_prefix);
  return found == by_prefix_.end() ? nullptr : found->second.get();
}

WatchCache* WatchCaches::Route(std::string_view etcd_key, std::string_view& key) const {
  auto after = by_prefix_.upper_bound(etcd_key);
  if (after == by_prefix_.begin()) return nullptr;
  const auto& [prefix, cache] = *std::prev(after);
  if (etcd_key.substr(0, prefix.size()) != prefix) return nullptr;
  key = etcd_key.substr(prefix.size());
  return IsKeyOf(cache->info(), key) ? cache.get() : nullptr;
}

void WatchCaches::ForEach(const std::function<void(WatchCache&)>& each) const {
  for (const auto& [prefix, cache] : by_prefix_) each(*cache);
}

Result<ObjectPtr> Reflector::Decode(const api::ResourceInfo& info, std::string_view key,
                                    const etcd::KeyValue& kv) {
  Result<ObjectPtr> object = decoder_.DecodeLatest(info, key, kv);
  if (object) return object;
  CountDecodeError(info);
  log::Warn("Cannot read a stored object", {{"key", kv.key}, {"err", object.error()}});
  if (object.error().Is(Code::kUnavailable)) return object;
  return ObjectPtr();
}

Result<> Reflector::ListOne(WatchCache& cache, int64_t revision, std::stop_token stop) {
  const api::ResourceInfo& info = cache.info();
  std::string next(info.etcd_prefix);
  etcd::RangeOptions options;
  options.end = etcd::PrefixEnd(next);
  options.limit = kPage;
  options.revision = revision;
  std::vector<ObjectPtr> objects;
  StorageList list(info);
  while (true) {
    KEELSON_ASSIGN_OR_RETURN(etcd::RangeResult page, client_.Range(next, options, {SteadyTime::max(), stop}));
    list.fetched += page.kvs.size();
    for (const etcd::KeyValue& kv : page.kvs) {
      std::string_view key = std::string_view(kv.key).substr(info.etcd_prefix.size());
      if (!IsKeyOf(info, key)) continue;
      KEELSON_ASSIGN_OR_RETURN(ObjectPtr object, Decode(info, key, kv));
      if (object) objects.push_back(std::move(object));
    }
    if (!page.more || page.kvs.empty()) break;
    next = page.kvs.back().key + '\0';
  }
  list.evaluated = list.fetched;
  list.returned = objects.size();
  cache.Replace(std::move(objects), revision);
  return {};
}

Result<int64_t> Reflector::List(std::stop_token stop) {
  decoder_.ForgetAll();
  KEELSON_ASSIGN_OR_RETURN(int64_t revision, client_.Revision({SteadyTime::max(), stop}));
  Result<> failed;
  caches_.ForEach([&](WatchCache& cache) {
    if (failed) failed = ListOne(cache, revision, stop);
  });
  if (!failed) return failed.error();
  return revision;
}

void Reflector::Apply(etcd::WatchBatch batch) {
  {
    MutexLock lock(mutex_);
    if (relist_) return;  // an earlier event was not applied
  }
  size_t i = 0;
  while (i < batch.events.size()) {
    const int64_t revision = batch.events[i].kv.mod_revision;
    std::map<WatchCache*, std::vector<WatchCache::Update>> updates;
    for (; i < batch.events.size() && batch.events[i].kv.mod_revision == revision; ++i) {
      const auto& event = batch.events[i];
      std::string_view key;
      WatchCache* cache = caches_.Route(event.kv.key, key);
      if (!cache) continue;
      CountStorageEvent(cache->info());
      ObjectPtr object;
      if (event.deleted) {
        decoder_.Forget(event.kv.key);
      } else if (Result<ObjectPtr> read = Decode(cache->info(), key, event.kv)) {
        object = std::move(*read);
      } else {
        // A KMS does not answer. Everything is listed again once it does; until then no watcher sees the
        // object disappear.
        return Relist();
      }
      const bool unreadable = !event.deleted && !object;
      updates[cache].push_back({std::string(key), std::move(object), unreadable});
    }
    for (auto& [cache, list] : updates) cache->Apply(std::move(list), revision);
  }
  gate_.Advance(batch.revision);
}

void Reflector::Relist() {
  MutexLock lock(mutex_);
  relist_ = true;
  watch_.request_stop();
}

Error Reflector::Watch(std::stop_token stop) {
  std::stop_source source;
  {
    MutexLock lock(mutex_);
    if (relist_) return Error(Code::kCancelled, "to be read again");
    watch_ = source;
  }
  std::stop_callback on_stop(stop, [&source] { source.request_stop(); });
  return client_.Watch(
      std::string(1, '\0'), std::string(1, '\0'), gate_.reached() + 1, [this] { backoff_ = kFirstBackoff; },
      [this](etcd::WatchBatch batch) { Apply(std::move(batch)); }, source.get_token());
}

void Reflector::Run(std::stop_token stop, const std::function<void()>& ready) {
  bool was_ready = false, listed = false;
  backoff_ = kFirstBackoff;
  while (!stop.stop_requested()) {
    Error ended(Code::kUnavailable, "");
    if (!listed) {
      {
        MutexLock lock(mutex_);
        relist_ = false;
      }
      if (Result<int64_t> revision = List(stop)) {
        listed = true;
        gate_.Advance(*revision);
        if (!was_ready) ready();
        was_ready = true;
      } else {
        ended = revision.error();
      }
    }
    if (listed) {
      ended = Watch(stop);
      // An etcd that was restored from a backup is behind the caches: everything has to be listed.
      Result<int64_t> now = client_.Revision({SteadyTime::max(), stop});
      if (ended.Is(Code::kGone) || (now && *now < gate_.reached())) listed = false;
      MutexLock lock(mutex_);
      if (relist_) listed = false;
    }
    if (stop.stop_requested()) break;
    log::Warn("The watch on etcd was interrupted", {{"err", ended}});
    Wait(backoff_, stop);
    backoff_ = std::min(backoff_ * 2, kLastBackoff);
  }
  caches_.ForEach([](WatchCache& cache) {
    cache.TerminateAllWatchers(Error(Code::kUnavailable, "the server is shutting down"));
  });
}

}  // namespace keelson::storage
