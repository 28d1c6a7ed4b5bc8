#include <algorithm>
#include <iterator>

#include "controlplane/storage/cache_watcher.h"

namespace keelson::storage {
namespace {

// Changes that each watcher gets together: its connection sends them as one.
constexpr size_t kMaxBatch = 64;

size_t Deliveries(const EventDispatch::Item& item) {
  return item.watchers->size() * std::max<size_t>(1, item.changes.size());
}

}  // namespace

void EventDispatch::Add(Item item) {
  if (item.watchers->empty()) {
    dispatched_.Add(static_cast<double>(item.changes.size()));
    return;
  }
  MutexLock lock(mutex_);
  changes_ += item.changes.size();
  queue_.push_back(std::move(item));
}

void EventDispatch::Run() {
  {
    MutexLock lock(mutex_);
    if (running_ || queue_.empty()) return;
    running_ = true;
  }
  if (TellUpTo(kAtOnce)) return;
  if (!pool_.Submit([self = shared_from_this()] { self->TakeTurn(); })) TellUpTo(SIZE_MAX);
}

bool EventDispatch::TellUpTo(size_t largest) {
  while (true) {
    Item batch;
    {
      MutexLock lock(mutex_);
      if (queue_.empty()) {
        running_ = false;
        changed_.notify_all();
        return true;
      }
      if (Deliveries(queue_.front()) > largest) return false;
      batch = TakeBatch(largest);
    }
    Tell(batch);
  }
}

void EventDispatch::TakeTurn() {
  Item batch;
  {
    MutexLock lock(mutex_);
    batch = TakeBatch(SIZE_MAX);
  }
  Tell(batch);
  {
    MutexLock lock(mutex_);
    if (queue_.empty()) {
      running_ = false;
      changed_.notify_all();
      return;
    }
  }
  if (!pool_.Submit([self = shared_from_this()] { self->TakeTurn(); })) TellUpTo(SIZE_MAX);
}

// The first item, and the changes behind it that the same watchers are to get.
EventDispatch::Item EventDispatch::TakeBatch(size_t largest) {
  Item batch = std::move(queue_.front());
  queue_.pop_front();
  auto joins = [&](const Item& next) {
    return next.watchers == batch.watchers && !next.end && next.bookmark == 0 &&
           batch.changes.size() + next.changes.size() <= kMaxBatch &&
           Deliveries(batch) + Deliveries(next) <= largest;
  };
  while (!batch.end && batch.bookmark == 0 && !queue_.empty() && joins(queue_.front())) {
    std::move(queue_.front().changes.begin(), queue_.front().changes.end(),
              std::back_inserter(batch.changes));
    queue_.pop_front();
  }
  changes_ -= batch.changes.size();
  changed_.notify_all();
  return batch;
}

void EventDispatch::Tell(const Item& batch) const {
  for (const auto& watcher : *batch.watchers) {
    for (const WatchCacheEventPtr& change : batch.changes) watcher->Add(change);
    if (batch.bookmark != 0 && watcher->request().bookmarks) watcher->AddBookmark(batch.bookmark);
    if (batch.end) watcher->End(*batch.end);
  }
  dispatched_.Add(static_cast<double>(batch.changes.size()));
}

void EventDispatch::AwaitRoom() {
  MutexLock lock(mutex_);
  while (running_ && changes_ > kMaxQueued) changed_.wait(mutex_);
}

void EventDispatch::AwaitIdle() {
  MutexLock lock(mutex_);
  while (running_) changed_.wait(mutex_);
}

}  // namespace keelson::storage
