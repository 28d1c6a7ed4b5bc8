#include "controlplane/storage/feed.h"

#include <algorithm>

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

ObjectPtr Read(const api::ResourceInfo& info, std::string_view key, const etcd::KeyValue& kv) {
  Result<ObjectPtr> object = Object::FromStored(info, std::string(key), kv.mod_revision, kv.value);
  if (object) return *object;
  log::Warn("Cannot read a stored object", {{"key", kv.key}, {"error", object.error()}});
  return nullptr;
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

Result<> Feed::LoadOne(ResourceCache& cache, int64_t revision, std::stop_token stop) {
  const api::ResourceInfo& info = cache.info();
  std::string next(info.etcd_prefix);
  etcd::RangeOptions options;
  options.end = etcd::PrefixEnd(next);
  options.limit = kPage;
  options.revision = revision;
  std::vector<ObjectPtr> objects;
  while (true) {
    ASSIGN_OR_RETURN(etcd::RangeResult page, client_.Range(next, options, {SteadyTime::max(), stop}));
    for (const etcd::KeyValue& kv : page.kvs) {
      std::string_view key = std::string_view(kv.key).substr(info.etcd_prefix.size());
      if (!IsKeyOf(info, key)) continue;
      if (ObjectPtr object = Read(info, key, kv)) objects.push_back(std::move(object));
    }
    if (!page.more || page.kvs.empty()) break;
    next = page.kvs.back().key + '\0';
  }
  cache.Reset(std::move(objects), revision);
  return {};
}

Result<int64_t> Feed::Load(std::stop_token stop) {
  ASSIGN_OR_RETURN(int64_t revision, client_.Revision({SteadyTime::max(), stop}));
  Result<> failed;
  caches_.ForEach([&](ResourceCache& cache) {
    if (failed) failed = LoadOne(cache, revision, stop);
  });
  if (!failed) return failed.error();
  return revision;
}

void Feed::Apply(etcd::WatchBatch batch) {
  size_t i = 0;
  while (i < batch.events.size()) {
    const int64_t revision = batch.events[i].kv.mod_revision;
    std::map<ResourceCache*, std::vector<ResourceCache::Update>> updates;
    for (; i < batch.events.size() && batch.events[i].kv.mod_revision == revision; ++i) {
      const auto& event = batch.events[i];
      std::string_view key;
      ResourceCache* cache = caches_.Route(event.kv.key, key);
      if (!cache) continue;
      ObjectPtr object = event.deleted ? nullptr : Read(cache->info(), key, event.kv);
      updates[cache].push_back({std::string(key), std::move(object)});
    }
    for (auto& [cache, list] : updates) cache->Apply(std::move(list), revision);
  }
  gate_.Reach(batch.revision);
}

void Feed::Run(std::stop_token stop, const std::function<void()>& ready) {
  bool was_ready = false, loaded = false;
  milliseconds backoff = kFirstBackoff;
  while (!stop.stop_requested()) {
    Error ended(Code::kUnavailable, "");
    if (!loaded) {
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
      ended = client_.Watch(
          std::string(1, '\0'), std::string(1, '\0'), gate_.reached() + 1, [&] { backoff = kFirstBackoff; },
          [this](etcd::WatchBatch batch) { Apply(std::move(batch)); }, stop);
      // An etcd restored from a backup is behind us: all that we know is void.
      Result<int64_t> now = client_.Revision({SteadyTime::max(), stop});
      if (ended.Is(Code::kGone) || (now && *now < gate_.reached())) loaded = false;
    }
    if (stop.stop_requested()) break;
    log::Warn("The watch on etcd was interrupted", {{"error", ended}});
    Wait(backoff, stop);
    backoff = std::min(backoff * 2, kLastBackoff);
  }
  caches_.ForEach([](ResourceCache& cache) {
    cache.EndWatches(Error(Code::kUnavailable, "the server is shutting down"));
  });
}

}  // namespace keelson::storage
