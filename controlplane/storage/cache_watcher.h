// One watch on a watch cache: selects events, queues them while the watch starts, and passes them to its sink one
// at a time. And what tells all watches of a cache of its changes.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "controlplane/storage/object.h"
#include "controlplane/storage/store.h"
#include "lib/base/error.h"
#include "lib/base/mutex.h"
#include "lib/base/worker_pool.h"
#include "lib/metrics/metrics.h"

namespace keelson::storage {

// A change of one key at one revision. Immutable; the events that watchers see are made once and shared.
class WatchCacheEvent {
 public:
  // `object` null: deleted; `previous` null: created.
  WatchCacheEvent(ObjectPtr object, ObjectPtr previous, int64_t revision)
      : object_(std::move(object)), previous_(std::move(previous)), revision_(revision) {}

  int64_t revision() const { return revision_; }
  const ObjectPtr& object() const { return object_; }
  const ObjectPtr& previous() const { return previous_; }
  const Object& any() const { return object_ ? *object_ : *previous_; }
  size_t MemorySize() const { return sizeof *this + any().MemorySize(); }

  // The event for a watcher whose selectors matched the object before the change, and match it now; null:
  // none. A deletion shows the last state of the object with the deletion's revision.
  EventPtr View(bool before, bool now) const;

 private:
  EventPtr Shared(Event::Type type, const ObjectPtr& object) const;

  const ObjectPtr object_, previous_;
  const int64_t revision_;
  mutable std::atomic<std::shared_ptr<const Event>> events_[3];  // by Event::Type
};
using WatchCacheEventPtr = std::shared_ptr<const WatchCacheEvent>;

class CacheWatcher {  // thread safe
 public:
  CacheWatcher(const api::ResourceInfo& info, WatchRequest request, std::shared_ptr<WatchSink> sink)
      : info_(info), request_(std::move(request)), sink_(std::move(sink)) {}

  // Skips changes up to `revision`. Before AddWatcher() makes the watcher known to others.
  void StartAfter(int64_t revision);
  // The thread that adds the watcher delivers the events that are due by Send(), and then calls CatchUp().
  // Until then changes from Add() queue up behind them. False: the sink takes no more events.
  bool Send(const EventPtr& event);
  void CatchUp();

  // Delivers a change, if the watch selects it. Does not block on the sink's reader.
  void Add(const WatchCacheEventPtr& change);
  // Delivers a bookmark, unless it would be older than events that were delivered.
  void AddBookmark(int64_t revision);
  // Ends the watch: after all that is queued the sink gets OnEnd.
  void End(const Error& error);
  // Ends the watch at once. No call to the sink is under way, or comes, after this returns.
  void Detach();

  // The event that this watch shows for a change; null: none.
  EventPtr Select(const WatchCacheEvent& change) const;
  // Whether namespace and selectors of the request match the object.
  bool Wants(const Object& object) const;
  const WatchRequest& request() const { return request_; }
  const api::ResourceInfo& info() const { return info_; }
  bool dead() const;

 private:
  struct Item {
    EventPtr event;  // null: the end
    Error error{Code::kInternal, ""};
  };
  void Enqueue(Item item);
  void Drain();

  const api::ResourceInfo& info_;
  const WatchRequest request_;
  const std::shared_ptr<WatchSink> sink_;
  mutable Mutex mutex_;
  CondVar idle_;
  bool delivering_ KEELSON_GUARDED_BY(mutex_) =
      true;  // a thread is inside the sink; at first the one that adds it
  bool dead_ KEELSON_GUARDED_BY(mutex_) = false;
  int64_t after_ KEELSON_GUARDED_BY(mutex_) = 0;
  int64_t last_revision_ KEELSON_GUARDED_BY(mutex_) = 0;
  std::deque<Item> queue_ KEELSON_GUARDED_BY(mutex_);
};

// Delivers the changes of one cache to its watchers, in order. A change that few watch goes out at once, on the thread that
// brings it; a thread of a pool delivers what many watch, so that neither consistent reads nor other resources wait until
// thousands of watchers have heard of a change. A watcher may therefore be behind what reads show, as upstream's are.
class EventDispatch : public std::enable_shared_from_this<EventDispatch> {  // thread safe
 public:
  using Watchers = std::vector<std::shared_ptr<CacheWatcher>>;
  // In this order: changes, a bookmark, the end.
  struct Item {
    std::shared_ptr<const Watchers> watchers;
    std::vector<WatchCacheEventPtr> changes;
    int64_t bookmark = 0;  // 0: none
    std::optional<Error> end;
  };
  // So many deliveries (changes times watchers) are made at once.
  static constexpr size_t kAtOnce = 64;
  // A cache with so many undelivered changes takes no more.
  static constexpr size_t kMaxQueued = 10'000;

  // `pool` outlives this; several caches share it in turns. `dispatched` counts changes.
  EventDispatch(WorkerPool& pool, metrics::Value& dispatched) : pool_(pool), dispatched_(dispatched) {}

  // Queues only, so that callers may hold the lock that orders their items. Run() follows.
  void Add(Item item);
  // Delivers what is queued, or makes the pool do so.
  void Run();
  // Waits while more than kMaxQueued changes are queued, or until all are delivered.
  void AwaitRoom();
  void AwaitIdle();

 private:
  // Delivers what is queued. Stops and returns false at a batch of more than `largest` deliveries.
  bool TellUpTo(size_t largest);
  // One batch, on a thread of the pool; then other caches have their turn.
  void TakeTurn();
  Item TakeBatch(size_t largest) KEELSON_REQUIRES(mutex_);
  void Tell(const Item& batch) const;

  WorkerPool& pool_;
  metrics::Value& dispatched_;
  Mutex mutex_;
  CondVar changed_;
  bool running_ KEELSON_GUARDED_BY(mutex_) = false;  // a thread tells, or the pool has been asked to
  size_t changes_ KEELSON_GUARDED_BY(mutex_) = 0;    // that are queued
  std::deque<Item> queue_ KEELSON_GUARDED_BY(mutex_);
};

}  // namespace keelson::storage
