#include "controlplane/scheduler/queue.h"

#include <algorithm>

namespace keelson::scheduler {

namespace {

// How often pods that nothing seems to help are looked at, at the latest.
constexpr std::chrono::seconds kFlushInterval{30};

}  // namespace

SchedulingQueue::SchedulingQueue(Clock& clock, QueueOptions options, Hint hint)
    : clock_(clock), options_(options), hint_(std::move(hint)) {}

std::chrono::nanoseconds SchedulingQueue::BackoffOf(const Entry& entry) const {
  std::chrono::nanoseconds delay = options_.initial_backoff;
  for (int i = 1; i < entry.attempts && delay < options_.max_backoff; ++i) delay *= 2;
  return std::min(delay, options_.max_backoff);
}

void SchedulingQueue::Leave(Entries::iterator it) {
  const Entry& entry = it->second;
  switch (entry.place) {
    case Place::kActive:
      active_.erase(OrderOf(entry));
      break;
    case Place::kBackoff:
      backoff_.erase(DueOf(entry));
      break;
    case Place::kUnschedulable:
      unschedulable_.erase(DueOf(entry));
      gated_ -= entry.gated;
      break;
    case Place::kInFlight:
      --in_flight_;
      ForgetEvents();
      break;
  }
}

void SchedulingQueue::Activate(Entries::iterator it) {
  Entry& entry = it->second;
  entry.place = Place::kActive;
  entry.queued = clock_.SteadyNow();
  active_.emplace(OrderOf(entry), it);
  ready_.notify_one();
}

void SchedulingQueue::BackOff(Entries::iterator it) {
  Entry& entry = it->second;
  entry.place = Place::kBackoff;
  entry.due = clock_.SteadyNow() + BackoffOf(entry);
  backoff_.emplace(DueOf(entry), it);
  changed_.notify_all();
}

void SchedulingQueue::Park(Entries::iterator it) {
  Entry& entry = it->second;
  entry.place = Place::kUnschedulable;
  entry.due = clock_.SteadyNow() + options_.max_unschedulable;
  unschedulable_.emplace(DueOf(entry), it);
  entry.gated = entry.pod->gated;
  gated_ += entry.gated;
}

void SchedulingQueue::ForgetEvents() {
  if (in_flight_ > 0) return;
  events_begin_ += events_.size();
  events_.clear();
}

void SchedulingQueue::Set(PodPtr pod, bool spec_changed) {
  MutexLock lock(mutex_);
  const auto [it, added] = entries_.try_emplace(pod->key);
  Entry& entry = it->second;
  if (added) {
    entry.sequence = ++sequence_;
    entry.pod = std::move(pod);
    if (entry.pod->gated) {
      Park(it);
    } else {
      Activate(it);
    }
    return;
  }
  const bool released = entry.pod->gated && !pod->gated;
  const bool moves = released || spec_changed;
  if (!moves || entry.place == Place::kInFlight || entry.place == Place::kBackoff) {
    entry.pod = std::move(pod);
    entry.changed = entry.changed || moves;
    return;
  }
  const bool was_active = entry.place == Place::kActive;
  if (was_active) Leave(it);
  entry.pod = std::move(pod);
  if (was_active) {
    Activate(it);
  } else if (!entry.pod->gated) {
    Wake(it);
  }
}

void SchedulingQueue::Remove(std::string_view key) {
  MutexLock lock(mutex_);
  const auto it = entries_.find(key);
  if (it == entries_.end()) return;
  Leave(it);
  entries_.erase(it);
}

std::optional<PodPtr> SchedulingQueue::Pop(std::stop_token stop) {
  MutexLock lock(mutex_);
  if (!ready_.wait(mutex_, stop, [this]() NO_THREAD_SAFETY_ANALYSIS { return !active_.empty(); })) {
    return std::nullopt;
  }
  Entry& entry = active_.begin()->second->second;
  active_.erase(active_.begin());
  entry.place = Place::kInFlight;
  entry.changed = false;
  entry.first_event = events_begin_ + events_.size();
  ++entry.attempts;
  ++in_flight_;
  return entry.pod;
}

void SchedulingQueue::Done(std::string_view key) {
  MutexLock lock(mutex_);
  const auto it = entries_.find(key);
  if (it == entries_.end() || it->second.place != Place::kInFlight) return;
  Leave(it);
  entries_.erase(it);
}

void SchedulingQueue::Unschedulable(const PodPtr& pod, std::vector<std::string_view> rejected_by) {
  MutexLock lock(mutex_);
  const auto it = entries_.find(pod->key);
  if (it == entries_.end() || it->second.place != Place::kInFlight) return;
  Entry& entry = it->second;
  entry.rejected_by = std::move(rejected_by);
  bool again = entry.changed;
  for (uint64_t i = entry.first_event - events_begin_; i < events_.size() && !again; ++i) {
    again = hint_(entry.rejected_by, events_[i], *entry.pod);
  }
  Leave(it);
  if (again) {
    BackOff(it);
  } else {
    Park(it);
  }
}

void SchedulingQueue::Retry(const PodPtr& pod) {
  MutexLock lock(mutex_);
  const auto [it, added] = entries_.try_emplace(pod->key);
  Entry& entry = it->second;
  if (added) {
    entry.pod = pod;
    entry.sequence = ++sequence_;
    entry.attempts = 1;
  } else if (entry.place != Place::kInFlight) {
    return;
  } else {
    Leave(it);
  }
  BackOff(it);
}

void SchedulingQueue::Wake(Entries::iterator it) {
  Entry& entry = it->second;
  Leave(it);
  // The back-off counts from the failed attempt, which parked it.
  const SteadyTime over = entry.due - options_.max_unschedulable + BackoffOf(entry);
  if (entry.attempts == 0 || over <= clock_.SteadyNow()) {
    Activate(it);
    return;
  }
  entry.place = Place::kBackoff;
  entry.due = over;
  backoff_.emplace(DueOf(entry), it);
  changed_.notify_all();
}

void SchedulingQueue::Notify(const ClusterEvent& event) {
  MutexLock lock(mutex_);
  if (in_flight_ > 0) events_.push_back(event);
  std::vector<Entries::iterator> helped;
  for (const auto& [due, it] : unschedulable_) {
    const Entry& entry = it->second;
    if (!entry.pod->gated && hint_(entry.rejected_by, event, *entry.pod)) helped.push_back(it);
  }
  for (Entries::iterator it : helped) Wake(it);
}

SteadyTime SchedulingQueue::FlushLocked() {
  const SteadyTime now = clock_.SteadyNow();
  for (auto* waiting : {&backoff_, &unschedulable_}) {
    std::vector<Entries::iterator> due;
    for (auto it = waiting->begin(); it != waiting->end() && it->first.first <= now; ++it) {
      due.push_back(it->second);
    }
    for (Entries::iterator it : due) {
      Leave(it);
      if (it->second.pod->gated) {
        Park(it);
      } else {
        Activate(it);
      }
    }
  }
  SteadyTime next = now + kFlushInterval;
  if (!backoff_.empty()) next = std::min(next, backoff_.begin()->first.first);
  if (!unschedulable_.empty()) next = std::min(next, unschedulable_.begin()->first.first);
  return next;
}

SteadyTime SchedulingQueue::Flush() {
  MutexLock lock(mutex_);
  return FlushLocked();
}

void SchedulingQueue::Run(std::stop_token stop) {
  std::stop_callback wake(stop, [this] {
    MutexLock lock(mutex_);
    changed_.notify_all();
  });
  MutexLock lock(mutex_);
  while (!stop.stop_requested()) clock_.WaitUntil(mutex_, changed_, FlushLocked());
}

SchedulingQueue::Sizes SchedulingQueue::sizes() const {
  MutexLock lock(mutex_);
  return {active_.size(), backoff_.size(), unschedulable_.size() - gated_, gated_};
}

}  // namespace keelson::scheduler
