#include "controlplane/scheduler/queue/queue.h"

#include <algorithm>

#include "controlplane/scheduler/framework/metrics.h"

namespace keelson::scheduler {

namespace {

// How often pods that nothing seems to help are looked at, at the latest.
constexpr std::chrono::seconds kFlushInterval{30};

// Why a pod comes into a queue, as metrics name it.
constexpr char kNew[] = "UnscheduledPodAdd", kUpdated[] = "UnscheduledPodUpdate",
               kFailed[] = "ScheduleAttemptFailure", kBackoffOver[] = "BackoffComplete",
               kForced[] = "ForceActivate", kTimedOut[] = "UnschedulableTimeout",
               kTakenEarly[] = "PopFromBackoffQ";

void CountIncoming(const char* queue, std::string_view event) {
  TheMetrics().incoming.With({queue, std::string(event)}).Increment();
}

}  // namespace

SchedulingQueue::SchedulingQueue(Clock& clock, QueueOptions options, Hooks hooks)
    : clock_(clock), options_(options), hooks_(std::move(hooks)) {}

std::chrono::nanoseconds SchedulingQueue::BackoffOf(const Entry& entry) const {
  // Errors on the way say nothing of how hard the pod is to place, and the other way round.
  const int times = entry.attempts.errors > 0 ? entry.attempts.errors : entry.attempts.rejections;
  if (times == 0) return {};
  std::chrono::nanoseconds delay = options_.initial_backoff;
  for (int i = 1; i < times && delay < options_.max_backoff; ++i) delay *= 2;
  return std::min(delay, options_.max_backoff);
}

void SchedulingQueue::Leave(Entries::iterator it) {
  const Entry& entry = it->second;
  switch (entry.place) {
    case Place::kActive:
      active_.erase(OrderOf(entry));
      break;
    case Place::kBackoff:
      BackoffMapOf(entry).erase(DueOf(entry));
      break;
    case Place::kUnschedulable:
      unschedulable_.erase(DueOf(entry));
      if (!entry.gated) by_interest_[entry.interests].erase(entry.sequence);
      gated_ -= entry.gated;
      break;
    case Place::kInFlight:
      --in_flight_;
      ForgetEvents();
      break;
  }
}

// What ruled a pod out counts until the pod is tried again.
void SchedulingQueue::CountRejections(Entry& entry, bool rejected) {
  if (entry.counted == rejected) return;
  entry.counted = rejected;
  for (std::string_view plugin : entry.rejected_by)
    TheMetrics().unschedulable.With({std::string(plugin), entry.pod->scheduler_name}).Add(rejected ? 1 : -1);
}

void SchedulingQueue::CountPending() {
  static metrics::Value &active = TheMetrics().pending.With({"active"}),
                        &backoff = TheMetrics().pending.With({"backoff"}),
                        &unschedulable = TheMetrics().pending.With({"unschedulable"}),
                        &gated = TheMetrics().pending.With({"gated"});
  active.Set(static_cast<double>(active_.size()));
  backoff.Set(static_cast<double>(backoff_.size() + failed_.size()));
  unschedulable.Set(static_cast<double>(unschedulable_.size() - gated_));
  gated.Set(static_cast<double>(gated_));
}

void SchedulingQueue::Activate(Entries::iterator it, std::string_view event) {
  Entry& entry = it->second;
  CountIncoming("active", event);
  entry.place = Place::kActive;
  entry.queued = clock_.SteadyNow();
  active_.emplace(OrderOf(entry), it);
  ready_.notify_one();
}

void SchedulingQueue::BackOff(Entries::iterator it, SteadyTime due, std::string_view event) {
  Entry& entry = it->second;
  CountIncoming("backoff", event);
  entry.place = Place::kBackoff;
  entry.due = due;
  BackoffMapOf(entry).emplace(DueOf(entry), it);
  changed_.notify_all();
  if (!entry.error) ready_.notify_one();
}

void SchedulingQueue::Park(Entries::iterator it, std::string_view event) {
  Entry& entry = it->second;
  CountIncoming("unschedulable", event);
  entry.place = Place::kUnschedulable;
  entry.due = clock_.SteadyNow() + options_.max_unschedulable;
  unschedulable_.emplace(DueOf(entry), it);
  entry.gated = !Admits(*entry.pod);
  gated_ += entry.gated;
  if (entry.gated) return;
  entry.interests = hooks_.interests ? hooks_.interests(entry.rejected_by, *entry.pod) : ~0u;
  by_interest_[entry.interests].emplace(entry.sequence, it);
}

void SchedulingQueue::ActivateOrPark(Entries::iterator it, std::string_view event) {
  if (Admits(*it->second.pod)) {
    Activate(it, event);
  } else {
    Park(it, event);
  }
}

void SchedulingQueue::ForgetEvents() {
  if (in_flight_ > 0 || events_.empty()) return;
  for (const ClusterEvent& event : events_)
    TheMetrics().events_in_flight.With({EventName(event.kind)}).Add(-1);
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
    entry.attempts.first = clock_.SteadyNow();
    ActivateOrPark(it, kNew);
    CountPending();
    return;
  }
  const bool moves = spec_changed;
  if (!moves || entry.place == Place::kInFlight || entry.place == Place::kBackoff) {
    entry.pod = std::move(pod);
    entry.changed = entry.changed || moves;
    return;
  }
  const bool was_active = entry.place == Place::kActive;
  if (was_active) Leave(it);
  entry.pod = std::move(pod);
  if (was_active) {
    ActivateOrPark(it, kUpdated);
  } else if (Admits(*entry.pod)) {
    Wake(it, kUpdated);
  }
  CountPending();
}

void SchedulingQueue::Remove(std::string_view key) {
  MutexLock lock(mutex_);
  const auto it = entries_.find(key);
  if (it == entries_.end()) return;
  CountRejections(it->second, false);
  Leave(it);
  entries_.erase(it);
  CountPending();
}

void SchedulingQueue::Activate(std::string_view key) {
  MutexLock lock(mutex_);
  const auto it = entries_.find(key);
  if (it == entries_.end()) return;
  Entry& entry = it->second;
  if (entry.place == Place::kInFlight) {
    entry.changed = true;
  } else if (entry.place != Place::kActive) {
    Leave(it);
    ActivateOrPark(it, kForced);
    CountPending();
  }
}

std::optional<PodPtr> SchedulingQueue::Pop(std::stop_token stop) {
  MutexLock lock(mutex_);
  const auto any = [this]() NO_THREAD_SAFETY_ANALYSIS { return !active_.empty() || !backoff_.empty(); };
  if (!ready_.wait(mutex_, stop, any)) return std::nullopt;
  const Entries::iterator it = active_.empty() ? backoff_.begin()->second : active_.begin()->second;
  Entry& entry = it->second;
  if (active_.empty()) CountIncoming("active", kTakenEarly);
  CountRejections(entry, false);
  Leave(it);
  entry.place = Place::kInFlight;
  entry.changed = false;
  entry.first_event = events_begin_ + events_.size();
  ++entry.attempts.all;
  ++in_flight_;
  CountPending();
  return entry.pod;
}

Attempts SchedulingQueue::Done(std::string_view key) {
  MutexLock lock(mutex_);
  const auto it = entries_.find(key);
  if (it == entries_.end() || it->second.place != Place::kInFlight) return {};
  const Attempts attempts = it->second.attempts;
  Leave(it);
  entries_.erase(it);
  return attempts;
}

void SchedulingQueue::Unschedulable(const PodPtr& pod, std::vector<std::string_view> rejected_by) {
  MutexLock lock(mutex_);
  const auto it = entries_.find(pod->key);
  if (it == entries_.end() || it->second.place != Place::kInFlight) return;
  Entry& entry = it->second;
  entry.rejected_by = std::move(rejected_by);
  ++entry.attempts.rejections;
  entry.attempts.errors = 0;
  bool again = entry.changed;
  for (uint64_t i = entry.first_event - events_begin_; i < events_.size() && !again; ++i) {
    again = hooks_.may_help(entry.rejected_by, events_[i], *entry.pod);
  }
  Leave(it);
  entry.error = false;
  CountRejections(entry, true);
  if (again && Admits(*entry.pod)) {
    BackOff(it, clock_.SteadyNow() + BackoffOf(entry), kFailed);
  } else {
    Park(it, kFailed);
  }
  CountPending();
}

void SchedulingQueue::Retry(const PodPtr& pod, const Attempts& before) {
  MutexLock lock(mutex_);
  const auto [it, added] = entries_.try_emplace(pod->key);
  Entry& entry = it->second;
  if (added) {
    entry.pod = pod;
    entry.sequence = ++sequence_;
    entry.attempts = before;
  } else if (entry.place != Place::kInFlight) {
    return;
  } else {
    Leave(it);
  }
  ++entry.attempts.errors;
  entry.error = true;
  BackOff(it, clock_.SteadyNow() + BackoffOf(entry), kFailed);
  CountPending();
}

void SchedulingQueue::Wake(Entries::iterator it, std::string_view event) {
  Entry& entry = it->second;
  Leave(it);
  // The back-off counts from the failed attempt, which parked it.
  const SteadyTime over = entry.due - options_.max_unschedulable + BackoffOf(entry);
  if (over <= clock_.SteadyNow()) {
    Activate(it, event);
    return;
  }
  entry.error = false;
  BackOff(it, over, event);
}

void SchedulingQueue::Notify(const ClusterEvent& event) {
  MutexLock lock(mutex_);
  if (in_flight_ > 0) {
    events_.push_back(event);
    TheMetrics().events_in_flight.With({EventName(event.kind)}).Add(1);
  }
  std::vector<Entries::iterator> helped;
  for (const auto& [interests, entries] : by_interest_) {
    if (!(interests & static_cast<uint32_t>(event.kind))) continue;
    for (const auto& [sequence, it] : entries) {
      if (hooks_.may_help(it->second.rejected_by, event, *it->second.pod)) helped.push_back(it);
    }
  }
  if (helped.empty()) return;
  const std::string name = EventName(event.kind);
  for (Entries::iterator it : helped) Wake(it, name);
  CountPending();
}

SteadyTime SchedulingQueue::FlushLocked() {
  const SteadyTime now = clock_.SteadyNow();
  for (auto* waiting : {&backoff_, &failed_, &unschedulable_}) {
    std::vector<Entries::iterator> due;
    for (auto it = waiting->begin(); it != waiting->end() && it->first.first <= now; ++it) {
      due.push_back(it->second);
    }
    for (Entries::iterator it : due) {
      const bool parked = it->second.place == Place::kUnschedulable;
      it->second.attempts.flushed = it->second.attempts.flushed || parked;
      Leave(it);
      ActivateOrPark(it, parked ? kTimedOut : kBackoffOver);
    }
  }
  CountPending();
  SteadyTime next = now + kFlushInterval;
  for (const auto* waiting : {&backoff_, &failed_, &unschedulable_}) {
    if (!waiting->empty()) next = std::min(next, waiting->begin()->first.first);
  }
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

SchedulingQueue::Standing SchedulingQueue::StandingOf(std::string_view key) const {
  MutexLock lock(mutex_);
  const auto it = entries_.find(key);
  if (it == entries_.end()) return {};
  const Entry& entry = it->second;
  switch (entry.place) {
    case Place::kActive:
      return {"active", entry.rejected_by};
    case Place::kBackoff:
      return {"backoff", entry.rejected_by};
    case Place::kUnschedulable:
      return {entry.gated ? "gated" : "unschedulable", entry.rejected_by};
    case Place::kInFlight:
      return {"in flight", entry.rejected_by};
  }
  return {};
}

SchedulingQueue::Sizes SchedulingQueue::sizes() const {
  MutexLock lock(mutex_);
  return {active_.size(), backoff_.size() + failed_.size(), unschedulable_.size() - gated_, gated_};
}

}  // namespace keelson::scheduler
