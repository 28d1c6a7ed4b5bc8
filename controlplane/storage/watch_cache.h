// The watch cache of a resource: all objects as of the latest revision seen, a window of recent events, and the
// watchers.
//
//   history   [ 101 104 105 109 ... ]   bounded by count, bytes and age
//             ^ oldest: a watch from resourceVersion >= floor_ can start here; older is 410 Gone
#pragma once

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "controlplane/storage/cache_watcher.h"
#include "controlplane/storage/watch_cache_metrics.h"
#include "lib/base/clock.h"
#include "lib/base/mutex.h"

namespace keelson::storage {

class WatchCache {
 public:
  struct Limits {
    size_t history_events, history_bytes;
  };
  // `pool` outlives the cache: its threads tell watchers of changes that many of them watch.
  WatchCache(const api::ResourceInfo& info, Limits limits, Clock& clock, WorkerPool& pool)
      : info_(info),
        limits_(limits),
        clock_(clock),
        metrics_(info, limits.history_events),
        dispatch_(std::make_shared<EventDispatch>(pool, metrics_.dispatched)) {}

  const api::ResourceInfo& info() const { return info_; }

  // ---- writes: by the reflector's thread only ----
  struct Update {
    std::string key;
    ObjectPtr object;  // null: deleted
    // The object exists and cannot be read. No watcher sees a deletion: watches end with kGone, and the list
    // that clients then ask for fails.
    bool unreadable = false;
  };
  // Replaces all objects by those of `revision`. The history is dropped, and watches end with kGone.
  void Replace(std::vector<ObjectPtr> objects, int64_t revision);
  // Applies the updates of one revision and dispatches their events to the watchers. Does not wait until they have them,
  // unless there are very many events that they do not have yet.
  void Apply(std::vector<Update> updates, int64_t revision);
  // Puts other forms of objects in the place of those that have the same key and revision. No watcher sees that.
  void Refresh(std::vector<ObjectPtr> objects);
  // Ends all watches with `error`, after the events that are on their way to them.
  void TerminateAllWatchers(const Error& error);
  // Waits until the watchers have what is on its way to them.
  void AwaitDispatch() const { dispatch_->AwaitIdle(); }

  // ---- reads: thread safe ----
  // Null: not there.
  ObjectPtr Get(std::string_view key) const;
  struct Page {
    std::vector<ObjectPtr> items;
    int64_t revision = 0;  // at least `reached`
    bool more = false;
    int64_t left = 0;  // objects in the range behind the last item, whether selected or not
  };
  // Up to `limit` (0: all) selected objects of namespace `ns` (empty: all) from key `start` on. `reached`: the
  // revision that all caches have reached.
  Page List(std::string_view ns, std::string_view start, const Predicate& predicate, int64_t limit,
            int64_t reached) const;
  // The revision of the latest change.
  int64_t last_change() const;
  Size size() const;
  // Calls `each` with all objects, or those of a namespace, as of one moment, without a lock held.
  void ForEach(const std::function<void(const ObjectPtr&)>& each) const;
  void ForEachIn(std::string_view ns, const std::function<void(const ObjectPtr&)>& each) const;

  // Starts a watch after revision `from`, or with all objects when `initial`. Events that are due are delivered
  // before this returns. A revision that is too old ends the watch with kGone.
  void AddWatcher(const std::shared_ptr<CacheWatcher>& watcher, int64_t from, bool initial, int64_t reached);
  // Later changes are not dispatched to the watcher; CacheWatcher::Detach() stops those that are on their way.
  void RemoveWatcher(const std::shared_ptr<CacheWatcher>& watcher);
  // Sends a bookmark to the watchers that asked for bookmarks, or to one, behind the events that are on their way to them.
  // `revision`: one that all caches have reached.
  void DispatchBookmarks(int64_t revision);
  void SendBookmark(const std::shared_ptr<CacheWatcher>& watcher, int64_t revision);
  // See Object::DropIdle.
  void DropIdle() const;

 private:
  using Watchers = EventDispatch::Watchers;
  struct HistoryEntry {
    WatchCacheEventPtr event;
    size_t bytes;
    SteadyTime at;
  };
  void AddToHistory(WatchCacheEventPtr event) KEELSON_REQUIRES(mutex_);
  // Drops the history up to `revision`. Ends the watches that need it once the caller runs dispatch_.
  void DropHistory(int64_t revision) KEELSON_REQUIRES(mutex_);
  // The present watchers, for dispatch_. One copy serves all items until a watcher comes or goes: thousands that come or go
  // at once cost no copy each.
  std::shared_ptr<const Watchers> SharedWatchers() KEELSON_REQUIRES(mutex_);
  // The same, and leaves none.
  std::shared_ptr<const Watchers> TakeWatchers() KEELSON_REQUIRES(mutex_);

  const api::ResourceInfo& info_;
  const Limits limits_;
  Clock& clock_;
  const WatchCacheMetrics metrics_;
  const std::shared_ptr<EventDispatch> dispatch_;  // gets its items under mutex_, in the order of the changes
  mutable Mutex mutex_;
  std::map<std::string_view, ObjectPtr> objects_ KEELSON_GUARDED_BY(mutex_);  // keys point into the objects
  size_t bytes_ KEELSON_GUARDED_BY(mutex_) = 0;                               // of all objects
  int64_t last_change_ KEELSON_GUARDED_BY(mutex_) = 0;
  int64_t floor_ KEELSON_GUARDED_BY(mutex_) = 0;  // history is complete after this revision
  std::deque<HistoryEntry> history_ KEELSON_GUARDED_BY(mutex_);
  size_t history_bytes_ KEELSON_GUARDED_BY(mutex_) = 0;
  Watchers watchers_ KEELSON_GUARDED_BY(mutex_);
  std::shared_ptr<const Watchers> shared_watchers_
      KEELSON_GUARDED_BY(mutex_);  // null: not made since the last change
};

}  // namespace keelson::storage
