#include "controlplane/storage/watcher.h"

#include <algorithm>

namespace keelson::storage {

EventPtr Change::Shared(Event::Type type, const ObjectPtr& object) const {
  auto& slot = events_[static_cast<size_t>(type)];
  if (EventPtr known = slot.load()) return known;
  EventPtr made = std::make_shared<Event>(type, object, revision_);
  EventPtr none;
  // Two threads may be here at once: all must end up with the same event, or its frames are made twice.
  return slot.compare_exchange_strong(none, made) ? made : none;
}

EventPtr Change::View(bool before, bool now) const {
  if (now && object_)
    return Shared(before && previous_ ? Event::Type::kModified : Event::Type::kAdded, object_);
  if (!before || !previous_) return nullptr;
  auto& slot = events_[static_cast<size_t>(Event::Type::kDeleted)];
  if (EventPtr known = slot.load()) return known;
  return Shared(Event::Type::kDeleted, previous_->WithRevision(revision_));
}

bool Watcher::Wants(const Object& object) const {
  if (!request_.ns.empty() && object.ns() != request_.ns) return false;
  return request_.predicate.IsEverything() ||
         object.Matches(request_.predicate.labels, request_.predicate.fields);
}

EventPtr Watcher::Select(const Change& change) const {
  bool before = change.previous() && Wants(*change.previous());
  bool now = change.object() && Wants(*change.object());
  EventPtr event = change.View(before, now);
  if (!event || &event->object()->info() == &info_) return event;
  return std::make_shared<Event>(event->type(), event->object()->In(info_), event->revision());
}

bool Watcher::Send(const EventPtr& event) {
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

void Watcher::StartAfter(int64_t revision) {
  MutexLock lock(mutex_);
  after_ = last_revision_ = revision;
}

void Watcher::CatchUp() { Drain(); }

void Watcher::Offer(const ChangePtr& change) {
  {
    MutexLock lock(mutex_);
    if (change->revision() <= after_) return;
  }
  if (EventPtr event = Select(*change)) Enqueue({std::move(event), Error(Code::kInternal, "")});
}

void Watcher::OfferBookmark(int64_t revision) {
  {
    MutexLock lock(mutex_);
    // Behind an event of a later revision it would send the client back in time.
    if (dead_ || revision < last_revision_ || !queue_.empty()) return;
  }
  Enqueue({Event::Bookmark(info_, revision, false), Error(Code::kInternal, "")});
}

void Watcher::End(const Error& error) { Enqueue({nullptr, error}); }

void Watcher::Enqueue(Item item) {
  {
    MutexLock lock(mutex_);
    if (dead_) return;
    queue_.push_back(std::move(item));
    if (delivering_) return;
    delivering_ = true;
  }
  Drain();
}

void Watcher::Drain() {
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

void Watcher::Detach() {
  MutexLock lock(mutex_);
  dead_ = true;
  while (delivering_) idle_.wait(mutex_);
}

bool Watcher::dead() const {
  MutexLock lock(mutex_);
  return dead_;
}

}  // namespace keelson::storage
