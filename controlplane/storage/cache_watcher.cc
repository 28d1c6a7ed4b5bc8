#include "controlplane/storage/cache_watcher.h"

#include <algorithm>

#include "controlplane/storage/convert.h"

namespace keelson::storage {

EventPtr WatchCacheEvent::Shared(Event::Type type, const ObjectPtr& object) const {
  auto& slot = events_[static_cast<size_t>(type)];
  if (EventPtr known = slot.load()) return known;
  EventPtr made = std::make_shared<Event>(type, object, revision_);
  EventPtr none;
  // Two threads may be here at once: all must get the same event, or its frames are made twice.
  return slot.compare_exchange_strong(none, made) ? made : none;
}

EventPtr WatchCacheEvent::View(bool before, bool now) const {
  if (now && object_) {
    return Shared(before && previous_ ? Event::Type::kModified : Event::Type::kAdded, object_);
  }
  if (!before || !previous_) return nullptr;
  auto& slot = events_[static_cast<size_t>(Event::Type::kDeleted)];
  if (EventPtr known = slot.load()) return known;
  return Shared(Event::Type::kDeleted, previous_->WithRevision(revision_));
}

bool CacheWatcher::Wants(const Object& object) const {
  if (!request_.ns.empty() && object.ns() != request_.ns) return false;
  return request_.predicate.IsEverything() ||
         object.Matches(request_.predicate.labels, request_.predicate.fields);
}

EventPtr CacheWatcher::Select(const WatchCacheEvent& change) const {
  bool before = change.previous() && Wants(*change.previous());
  bool now = change.object() && Wants(*change.object());
  EventPtr event = change.View(before, now);
  if (!event || &event->object()->info() == &info_ || NeedsWebhook(event->object()->info(), info_)) {
    return event;
  }
  return std::make_shared<Event>(event->type(), event->object()->In(info_), event->revision());
}

bool CacheWatcher::Send(const EventPtr& event) {
  {
    MutexLock lock(mutex_);
    if (dead_) return false;
    last_revision_ = std::max(last_revision_, event->revision());
  }
  if (sink_->OnEvent(event)) return true;
  MutexLock lock(mutex_);
  dead_ = true;
  return false;
}

void CacheWatcher::StartAfter(int64_t revision) {
  MutexLock lock(mutex_);
  after_ = last_revision_ = revision;
}

void CacheWatcher::CatchUp() { Drain(); }

void CacheWatcher::Add(const WatchCacheEventPtr& change) {
  {
    MutexLock lock(mutex_);
    if (dead_ || change->revision() <= after_) return;
  }
  if (EventPtr event = Select(*change)) Enqueue({std::move(event), Error(Code::kInternal, "")});
}

void CacheWatcher::AddBookmark(int64_t revision) {
  {
    MutexLock lock(mutex_);
    // A bookmark behind an event of a later revision would move the client back.
    if (dead_ || revision < last_revision_ || !queue_.empty()) return;
  }
  Enqueue({Event::Bookmark(info_, revision, false), Error(Code::kInternal, "")});
}

void CacheWatcher::End(const Error& error) { Enqueue({nullptr, error}); }

void CacheWatcher::Enqueue(Item item) {
  {
    MutexLock lock(mutex_);
    if (dead_) return;
    queue_.push_back(std::move(item));
    if (delivering_) return;
    delivering_ = true;
  }
  Drain();
}

void CacheWatcher::Drain() {
  while (true) {
    Item item;
    {
      MutexLock lock(mutex_);
      if (dead_ || queue_.empty()) {
        queue_.clear();
        delivering_ = false;
        idle_.notify_all();
        return;
      }
      item = std::move(queue_.front());
      queue_.pop_front();
      if (item.event) last_revision_ = std::max(last_revision_, item.event->revision());
    }
    bool goes_on = false;
    if (item.event) {
      goes_on = sink_->OnEvent(item.event);
    } else {
      sink_->OnEnd(item.error);
    }
    if (!goes_on) {
      MutexLock lock(mutex_);
      dead_ = true;
    }
  }
}

void CacheWatcher::Detach() {
  MutexLock lock(mutex_);
  dead_ = true;
  while (delivering_) idle_.wait(mutex_);
}

bool CacheWatcher::dead() const {
  MutexLock lock(mutex_);
  return dead_;
}

}  // namespace keelson::storage
