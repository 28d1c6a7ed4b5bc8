// One watch on a cache: selects, queues while it catches up, and hands events to its sink one at a time.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "controlplane/storage/object.h"
#include "controlplane/storage/store.h"
#include "lib/base/mutex.h"

namespace keelson::storage {

// What happened to one key at one revision. The events that watchers see are made once and shared.
class Change {
 public:
  // `object` null: deleted; `previous` null: created.
  Change(ObjectPtr object, ObjectPtr previous, int64_t revision)
      : object_(std::move(object)), previous_(std::move(previous)), revision_(revision) {}

  int64_t revision() const { return revision_; }
  const ObjectPtr& object() const { return object_; }
  const ObjectPtr& previous() const { return previous_; }
  const Object& any() const { return object_ ? *object_ : *previous_; }
  size_t MemorySize() const { return sizeof *this + any().MemorySize(); }

  // How it looks to a watcher that had (or not) the object before and wants it (or not) now; null: not at
  // all. Deletions show the object as it was last, under the deletion's revision.
  EventPtr View(bool before, bool now) const;

 private:
  EventPtr Shared(Event::Type type, const ObjectPtr& object) const;

  const ObjectPtr object_, previous_;
  const int64_t revision_;
  mutable std::atomic<std::shared_ptr<const Event>> events_[3];  // by Event::Type
};
using ChangePtr = std::shared_ptr<const Change>;

class Watcher {
 public:
  Watcher(const api::ResourceInfo& info, WatchRequest request, std::shared_ptr<WatchSink> sink)
      : info_(info), request_(std::move(request)), sink_(std::move(sink)) {}

  // Before the first event: nothing up to `revision` is of interest.
  void StartAfter(int64_t revision);
  // From Begin() to CatchUp() live events queue up behind what the beginner delivers by Send(), which is
  // false once the sink has had enough.
  bool Send(const EventPtr& event);
  void CatchUp();

  void Offer(const ChangePtr& change);  // live
  void OfferBookmark(int64_t revision);
  // The watch is over: the sink is told, after all that was queued.
  void End(const Error& error);
  // No call is under way or comes after this returns.
  void Detach();

  EventPtr Select(const Change& change) const;  // null: none of its business
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
  bool delivering_ GUARDED_BY(mutex_) = true;  // somebody is inside the sink; at first the beginner
  bool dead_ GUARDED_BY(mutex_) = false;
  int64_t after_ GUARDED_BY(mutex_) = 0;
  int64_t last_revision_ GUARDED_BY(mutex_) = 0;
  std::deque<Item> queue_ GUARDED_BY(mutex_);
};

}  // namespace keelson::storage
