#include "controlplane/storage/reflector.h"

#include <algorithm>
#include <map>

#include "controlplane/storage/watch_cache_metrics.h"
#include "lib/base/log.h"

namespace keelson::storage {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kFirstBackoff{50}, kLastBackoff{5000};

void Wait(milliseconds time, const std::stop_token& stop) {
  Mutex mutex;
  CondVar wake;
  MutexLock lock(mutex);
  wake.wait_for(mutex, stop, time, [] { return false; });
}

}  // namespace

Result<int64_t> Reflector::List(std::stop_token stop) {
  decoder_.ForgetAll();
  KEELSON_ASSIGN_OR_RETURN(int64_t revision, client_.Revision({SteadyTime::max(), stop}));
  Result<> failed;
  caches_.ForEachSlot([&](CacheSlot& slot) {
    if (!failed) return;
    Result<StoredObjects> listed =
        ListStored(client_, decoder_, slot.cache().info(), revision, {SteadyTime::max(), stop});
    if (listed) {
      slot.Replace(std::move(*listed));
    } else {
      failed = listed.error();
    }
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
    std::map<CacheSlot*, std::vector<WatchCache::Update>> updates;
    for (; i < batch.events.size() && batch.events[i].kv.mod_revision == revision; ++i) {
      const auto& event = batch.events[i];
      std::string_view key;
      CacheSlot* slot = caches_.Route(event.kv.key, key);
      if (!slot) continue;
      const api::ResourceInfo& info = slot->cache().info();
      CountStorageEvent(info);
      ObjectPtr object;
      if (event.deleted) {
        decoder_.Forget(event.kv.key);
      } else if (Result<ObjectPtr> read = DecodeOrSkip(decoder_, info, key, event.kv)) {
        object = std::move(*read);
      } else {
        // A KMS does not answer. Everything is listed again once it does; until then no watcher sees the
        // object disappear.
        return Relist();
      }
      const bool unreadable = !event.deleted && !object;
      updates[slot].push_back({std::string(key), std::move(object), unreadable});
    }
    for (auto& [slot, list] : updates) slot->Apply(std::move(list), revision);
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
    cache.AwaitDispatch();
  });
}

}  // namespace keelson::storage
