#include "controlplane/storage/watch_cache.h"

#include <algorithm>

#include <fmt/format.h>

namespace keelson::storage {
namespace {

// Older events are dropped: clients that are further behind list again.
constexpr std::chrono::minutes kHistoryAge{5};
constexpr size_t kHistoryKept = 64;  // so many events stay whatever their age

constexpr const char* kTooOld = "too old resource version";

bool InNamespace(std::string_view key, std::string_view ns) {
  return ns.empty() || (key.size() > ns.size() && key[ns.size()] == '/' && key.substr(0, ns.size()) == ns);
}

}  // namespace

void WatchCache::Replace(std::vector<ObjectPtr> objects, int64_t revision) {
  std::map<std::string_view, ObjectPtr> old;
  {
    MutexLock lock(mutex_);
    old.swap(objects_);
    bytes_ = 0;
    for (ObjectPtr& object : objects) {
      bytes_ += object->raw().size();
      std::string_view key = object->key();
      objects_.emplace_hint(objects_.end(), key, std::move(object));
    }
    DropHistory(revision);
  }
  metrics_.initializations.Increment();
  metrics_.revision.Set(static_cast<double>(revision));
  dispatch_->Run();
}

void WatchCache::DropHistory(int64_t revision) {
  history_.clear();
  history_bytes_ = 0;
  floor_ = last_change_ = revision;
  dispatch_->Add({TakeWatchers(), {}, 0, Error(Code::kGone, kTooOld)});
}

std::shared_ptr<const WatchCache::Watchers> WatchCache::SharedWatchers() {
  if (!shared_watchers_) shared_watchers_ = std::make_shared<const Watchers>(watchers_);
  return shared_watchers_;
}

std::shared_ptr<const WatchCache::Watchers> WatchCache::TakeWatchers() {
  std::shared_ptr<const Watchers> all = SharedWatchers();
  watchers_.clear();
  shared_watchers_ = nullptr;
  return all;
}

void WatchCache::AddToHistory(WatchCacheEventPtr change) {
  SteadyTime now = clock_.SteadyNow();
  size_t bytes = change->MemorySize();
  history_bytes_ += bytes;
  history_.push_back({std::move(change), bytes, now});
  while (history_.size() > limits_.history_events ||
         (history_bytes_ > limits_.history_bytes && history_.size() > 1) ||
         (history_.size() > kHistoryKept && now - history_.front().at > kHistoryAge)) {
    floor_ = history_.front().event->revision();
    history_bytes_ -= history_.front().bytes;
    history_.pop_front();
  }
}

void WatchCache::Apply(std::vector<Update> updates, int64_t revision) {
  std::vector<WatchCacheEventPtr> changes;
  metrics_.received.Add(static_cast<double>(updates.size()));
  {
    MutexLock lock(mutex_);
    bool lost = false;
    for (Update& update : updates) {
      ObjectPtr previous;
      if (auto found = objects_.find(update.key); found != objects_.end()) {
        previous = std::move(found->second);
        bytes_ -= previous->raw().size();
        objects_.erase(found);  // the key points into the object
      }
      if (update.object) {
        bytes_ += update.object->raw().size();
        objects_.emplace(update.object->key(), update.object);
      }
      lost |= update.unreadable;
      if (update.unreadable || (!previous && !update.object)) continue;
      changes.push_back(
          std::make_shared<WatchCacheEvent>(std::move(update.object), std::move(previous), revision));
      AddToHistory(changes.back());
    }
    if (!changes.empty()) {
      last_change_ = revision;
      dispatch_->Add({SharedWatchers(), std::move(changes), 0, std::nullopt});
    }
    if (lost) DropHistory(revision);
  }
  metrics_.revision.Set(static_cast<double>(revision));
  dispatch_->Run();
  dispatch_->AwaitRoom();
}

void WatchCache::Refresh(std::vector<ObjectPtr> objects) {
  MutexLock lock(mutex_);
  for (ObjectPtr& object : objects) {
    auto found = objects_.find(object->key());
    if (found == objects_.end() || found->second->revision() != object->revision()) continue;
    bytes_ += object->raw().size();
    bytes_ -= found->second->raw().size();
    objects_.erase(found);  // the key points into the object
    const std::string_view key = object->key();
    objects_.emplace(key, std::move(object));
  }
}

void WatchCache::TerminateAllWatchers(const Error& error) {
  {
    MutexLock lock(mutex_);
    dispatch_->Add({TakeWatchers(), {}, 0, error});
  }
  dispatch_->Run();
}

ObjectPtr WatchCache::Get(std::string_view key) const {
  MutexLock lock(mutex_);
  auto found = objects_.find(key);
  return found == objects_.end() ? nullptr : found->second;
}

WatchCache::Page WatchCache::List(std::string_view ns, std::string_view start, const Predicate& predicate,
                                  int64_t limit, int64_t reached) const {
  Page page;
  // '0' follows '/': the range of a namespace's keys is [ns/, ns0).
  std::string first = ns.empty() ? "" : std::string(ns) + "/";
  std::string last = ns.empty() ? "" : std::string(ns) + "0";
  if (start > first) first = std::string(start);
  std::vector<ObjectPtr> candidates;
  {
    MutexLock lock(mutex_);
    page.revision = std::max(reached, last_change_);
    auto begin = objects_.lower_bound(first);
    auto end = ns.empty() ? objects_.end() : objects_.lower_bound(last);
    if (ns.empty() && first.empty()) candidates.reserve(objects_.size());
    bool everything = predicate.IsEverything();
    auto it = begin;
    for (; it != end; ++it) {
      if (everything && limit > 0 && static_cast<int64_t>(candidates.size()) == limit) break;
      candidates.push_back(it->second);
    }
    page.more = it != end;
    page.left = page.more ? std::distance(it, end) : 0;
  }
  metrics_.lists.Increment();
  metrics_.list_fetched.Add(static_cast<double>(candidates.size()));
  if (predicate.IsEverything()) {
    page.items = std::move(candidates);
    metrics_.list_returned.Add(static_cast<double>(page.items.size()));
    return page;
  }
  // Matching happens outside the lock: writers need not wait for a long list.
  size_t i = 0;
  for (; i < candidates.size(); ++i) {
    if (!candidates[i]->Matches(predicate.labels, predicate.fields)) continue;
    if (limit > 0 && static_cast<int64_t>(page.items.size()) == limit) break;
    page.items.push_back(std::move(candidates[i]));
  }
  page.more = i < candidates.size();
  page.left = static_cast<int64_t>(candidates.size() - i);
  metrics_.list_returned.Add(static_cast<double>(page.items.size()));
  return page;
}

Size WatchCache::size() const {
  MutexLock lock(mutex_);
  return {objects_.size(), bytes_};
}

int64_t WatchCache::last_change() const {
  MutexLock lock(mutex_);
  return last_change_;
}

void WatchCache::ForEach(const std::function<void(const ObjectPtr&)>& each) const {
  std::vector<ObjectPtr> all;
  {
    MutexLock lock(mutex_);
    all.reserve(objects_.size());
    for (const auto& [key, object] : objects_) all.push_back(object);
  }
  for (const ObjectPtr& object : all) each(object);
}

void WatchCache::ForEachIn(std::string_view ns, const std::function<void(const ObjectPtr&)>& each) const {
  const std::string prefix = std::string(ns) + "/";
  std::vector<ObjectPtr> all;
  {
    MutexLock lock(mutex_);
    for (auto at = objects_.lower_bound(prefix);
         at != objects_.end() && at->first.substr(0, prefix.size()) == prefix; ++at) {
      all.push_back(at->second);
    }
  }
  for (const ObjectPtr& object : all) each(object);
}

void WatchCache::AddWatcher(const std::shared_ptr<CacheWatcher>& watcher, int64_t from, bool initial,
                            int64_t reached) {
  std::vector<ObjectPtr> objects;
  std::vector<WatchCacheEventPtr> changes;
  int64_t revision = 0, floor = 0;
  {
    MutexLock lock(mutex_);
    revision = std::max(reached, last_change_);
    floor = floor_;
    if (initial) {
      for (const auto& [key, object] : objects_) {
        if (InNamespace(key, watcher->request().ns)) objects.push_back(object);
      }
    } else if (from >= floor_) {
      auto after = std::upper_bound(
          history_.begin(), history_.end(), from,
          [](int64_t rv, const HistoryEntry& recent) { return rv < recent.event->revision(); });
      for (; after != history_.end(); ++after) changes.push_back(after->event);
    }
    if (initial || from >= floor_) {
      watcher->StartAfter(initial ? revision : from);
      watchers_.push_back(watcher);
      shared_watchers_ = nullptr;
    }
  }
  if (!initial && from < floor) {
    watcher->End(Error(Code::kGone, fmt::format("too old resource version: {} ({})", from, floor)));
    watcher->CatchUp();
    return;
  }
  bool goes_on = true;
  metrics_.initial.Add(static_cast<double>(initial ? objects.size() : changes.size()));
  for (size_t i = 0; goes_on && i < objects.size(); ++i) {
    if (!watcher->Wants(*objects[i])) continue;
    ObjectPtr object = objects[i]->In(watcher->info());
    goes_on = watcher->Send(std::make_shared<Event>(Event::Type::kAdded, object, object->revision()));
  }
  for (size_t i = 0; goes_on && i < changes.size(); ++i) {
    if (EventPtr event = watcher->Select(*changes[i])) goes_on = watcher->Send(event);
  }
  if (goes_on && watcher->request().initial_events_end) {
    watcher->Send(Event::Bookmark(watcher->info(), revision, true));
  }
  watcher->CatchUp();
}

void WatchCache::RemoveWatcher(const std::shared_ptr<CacheWatcher>& watcher) {
  MutexLock lock(mutex_);
  auto found = std::find(watchers_.begin(), watchers_.end(), watcher);
  if (found == watchers_.end()) return;
  watchers_.erase(found);
  shared_watchers_ = nullptr;
}

void WatchCache::DispatchBookmarks(int64_t revision) {
  {
    MutexLock lock(mutex_);
    dispatch_->Add({SharedWatchers(), {}, revision, std::nullopt});
  }
  dispatch_->Run();
}

void WatchCache::SendBookmark(const std::shared_ptr<CacheWatcher>& watcher, int64_t revision) {
  auto one = std::make_shared<const Watchers>(1, watcher);
  {
    MutexLock lock(mutex_);
    dispatch_->Add({std::move(one), {}, revision, std::nullopt});
  }
  dispatch_->Run();
}

void WatchCache::DropIdle() const {
  ForEach([](const ObjectPtr& object) { object->DropIdle(); });
}

}  // namespace keelson::storage
