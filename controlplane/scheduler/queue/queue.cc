#include "controlplane/scheduler/queue/queue.h"

#include <algorithm>

#include "controlplane/scheduler/framework/metrics.h"

namespace keelson::scheduler {

namespace {

// The longest time between two flushes.
constexpr std::chrono::seconds kFlushInterval{30};

// Why a pod enters a queue: the values of the metric's label "event".
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

std::chrono::nanoseconds SchedulingQueue::BackoffDuration(const QueuedPodInfo& info) const {
  // Errors and attempts that found no node are counted apart: they have different causes.
  const int times = info.attempts.consecutive_errors_count > 0 ? info.attempts.consecutive_errors_count
                                                               : info.attempts.unschedulable_count;
  if (times == 0) return {};
  std::chrono::nanoseconds delay = options_.initial_backoff;
  for (int i = 1; i < times && delay < options_.max_backoff; ++i) delay *= 2;
  return std::min(delay, options_.max_backoff);
}

void SchedulingQueue::Leave(Pods::iterator it) {
  const QueuedPodInfo& info = it->second;
  switch (info.place) {
    case Place::kActiveQ:
      active_q_.erase(OrderOf(info));
      break;
    case Place::kBackoffQ:
      BackoffQOf(info).erase(DueOf(info));
      break;
    case Place::kUnschedulablePods:
      unschedulable_pods_.erase(DueOf(info));
      if (!info.gated) by_registered_events_[info.registered_events].erase(info.sequence);
      gated_ -= info.gated;
      break;
    case Place::kInFlight:
      --in_flight_pods_;
      DropInFlightEvents();
      break;
  }
}

// A pod counts for the plugins that rejected it until its next attempt.
void SchedulingQueue::CountUnschedulable(QueuedPodInfo& info, bool unschedulable) {
  if (info.counted == unschedulable) return;
  info.counted = unschedulable;
  for (std::string_view plugin : info.unschedulable_plugins) {
    TheMetrics()
        .unschedulable.With({std::string(plugin), info.pod->scheduler_name})
        .Add(unschedulable ? 1 : -1);
  }
}

void SchedulingQueue::CountPending() {
  static metrics::Value &active = TheMetrics().pending.With({"active"}),
                        &backoff = TheMetrics().pending.With({"backoff"}),
                        &unschedulable = TheMetrics().pending.With({"unschedulable"}),
                        &gated = TheMetrics().pending.With({"gated"});
  active.Set(static_cast<double>(active_q_.size()));
  backoff.Set(static_cast<double>(backoff_q_.size() + error_backoff_q_.size()));
  unschedulable.Set(static_cast<double>(unschedulable_pods_.size() - gated_));
  gated.Set(static_cast<double>(gated_));
}

void SchedulingQueue::AddToActiveQ(Pods::iterator it, std::string_view event) {
  QueuedPodInfo& info = it->second;
  CountIncoming("active", event);
  info.place = Place::kActiveQ;
  info.timestamp = clock_.SteadyNow();
  active_q_.emplace(OrderOf(info), it);
  ready_.notify_one();
}

void SchedulingQueue::AddToBackoffQ(Pods::iterator it, SteadyTime due, std::string_view event) {
  QueuedPodInfo& info = it->second;
  CountIncoming("backoff", event);
  info.place = Place::kBackoffQ;
  info.due = due;
  BackoffQOf(info).emplace(DueOf(info), it);
  flush_due_.notify_all();
  if (!info.error) ready_.notify_one();
}

void SchedulingQueue::AddToUnschedulablePods(Pods::iterator it, std::string_view event) {
  QueuedPodInfo& info = it->second;
  CountIncoming("unschedulable", event);
  info.place = Place::kUnschedulablePods;
  info.due = clock_.SteadyNow() + options_.pod_max_in_unschedulable_pods_duration;
  unschedulable_pods_.emplace(DueOf(info), it);
  info.gated = !RunPreEnqueuePlugins(*info.pod);
  gated_ += info.gated;
  if (info.gated) return;
  info.registered_events =
      hooks_.events_to_register ? hooks_.events_to_register(info.unschedulable_plugins, *info.pod) : ~0u;
  by_registered_events_[info.registered_events].emplace(info.sequence, it);
}

void SchedulingQueue::MoveToActiveQ(Pods::iterator it, std::string_view event) {
  if (RunPreEnqueuePlugins(*it->second.pod)) {
    AddToActiveQ(it, event);
  } else {
    AddToUnschedulablePods(it, event);
  }
}

void SchedulingQueue::DropInFlightEvents() {
  if (in_flight_pods_ > 0 || in_flight_events_.empty()) return;
  for (const ClusterEvent& event : in_flight_events_) {
    TheMetrics().events_in_flight.With({EventName(event.kind)}).Add(-1);
  }
  in_flight_events_begin_ += in_flight_events_.size();
  in_flight_events_.clear();
}

void SchedulingQueue::AddOrUpdate(PodPtr pod, bool spec_changed) {
  MutexLock lock(mutex_);
  const auto [it, added] = pods_.try_emplace(pod->key);
  QueuedPodInfo& info = it->second;
  if (added) {
    info.sequence = ++sequence_;
    info.pod = std::move(pod);
    info.attempts.initial_attempt_timestamp = clock_.SteadyNow();
    MoveToActiveQ(it, kNew);
    CountPending();
    return;
  }
  if (!spec_changed || info.place == Place::kInFlight || info.place == Place::kBackoffQ) {
    info.pod = std::move(pod);
    info.requeue = info.requeue || spec_changed;
    return;
  }
  const bool was_active = info.place == Place::kActiveQ;
  if (was_active) Leave(it);
  info.pod = std::move(pod);
  if (was_active) {
    MoveToActiveQ(it, kUpdated);
  } else if (RunPreEnqueuePlugins(*info.pod)) {
    Requeue(it, kUpdated);
  }
  CountPending();
}

void SchedulingQueue::Delete(std::string_view key) {
  MutexLock lock(mutex_);
  const auto it = pods_.find(key);
  if (it == pods_.end()) return;
  CountUnschedulable(it->second, false);
  Leave(it);
  pods_.erase(it);
  CountPending();
}

void SchedulingQueue::Activate(std::string_view key) {
  MutexLock lock(mutex_);
  const auto it = pods_.find(key);
  if (it == pods_.end()) return;
  QueuedPodInfo& info = it->second;
  if (info.place == Place::kInFlight) {
    info.requeue = true;
  } else if (info.place != Place::kActiveQ) {
    Leave(it);
    MoveToActiveQ(it, kForced);
    CountPending();
  }
}

std::optional<PodPtr> SchedulingQueue::Pop(std::stop_token stop) {
  MutexLock lock(mutex_);
  const auto any = [this]() KEELSON_NO_THREAD_SAFETY_ANALYSIS {
    return !active_q_.empty() || !backoff_q_.empty();
  };
  if (!ready_.wait(mutex_, stop, any)) return std::nullopt;
  const Pods::iterator it = active_q_.empty() ? backoff_q_.begin()->second : active_q_.begin()->second;
  QueuedPodInfo& info = it->second;
  if (active_q_.empty()) CountIncoming("active", kTakenEarly);
  CountUnschedulable(info, false);
  Leave(it);
  info.place = Place::kInFlight;
  info.requeue = false;
  info.first_event = in_flight_events_begin_ + in_flight_events_.size();
  ++info.attempts.attempts;
  ++in_flight_pods_;
  CountPending();
  return info.pod;
}

AttemptCounts SchedulingQueue::Done(std::string_view key) {
  MutexLock lock(mutex_);
  const auto it = pods_.find(key);
  if (it == pods_.end() || it->second.place != Place::kInFlight) return {};
  const AttemptCounts attempts = it->second.attempts;
  Leave(it);
  pods_.erase(it);
  return attempts;
}

void SchedulingQueue::AddUnschedulablePodIfNotPresent(const PodPtr& pod,
                                                      std::vector<std::string_view> unschedulable_plugins) {
  MutexLock lock(mutex_);
  const auto it = pods_.find(pod->key);
  if (it == pods_.end() || it->second.place != Place::kInFlight) return;
  QueuedPodInfo& info = it->second;
  info.unschedulable_plugins = std::move(unschedulable_plugins);
  ++info.attempts.unschedulable_count;
  info.attempts.consecutive_errors_count = 0;
  bool again = info.requeue;
  for (uint64_t i = info.first_event - in_flight_events_begin_; i < in_flight_events_.size() && !again; ++i) {
    again = hooks_.queueing_hint(info.unschedulable_plugins, in_flight_events_[i], *info.pod);
  }
  Leave(it);
  info.error = false;
  CountUnschedulable(info, true);
  if (again && RunPreEnqueuePlugins(*info.pod)) {
    AddToBackoffQ(it, clock_.SteadyNow() + BackoffDuration(info), kFailed);
  } else {
    AddToUnschedulablePods(it, kFailed);
  }
  CountPending();
}

void SchedulingQueue::RetryAfterError(const PodPtr& pod, const AttemptCounts& before) {
  MutexLock lock(mutex_);
  const auto [it, added] = pods_.try_emplace(pod->key);
  QueuedPodInfo& info = it->second;
  if (added) {
    info.pod = pod;
    info.sequence = ++sequence_;
    info.attempts = before;
  } else if (info.place != Place::kInFlight) {
    return;
  } else {
    Leave(it);
  }
  ++info.attempts.consecutive_errors_count;
  info.error = true;
  AddToBackoffQ(it, clock_.SteadyNow() + BackoffDuration(info), kFailed);
  CountPending();
}

void SchedulingQueue::Requeue(Pods::iterator it, std::string_view event) {
  QueuedPodInfo& info = it->second;
  Leave(it);
  // The back-off counts from the end of the failed attempt, when the pod entered unschedulablePods.
  const SteadyTime over = info.due - options_.pod_max_in_unschedulable_pods_duration + BackoffDuration(info);
  if (over <= clock_.SteadyNow()) {
    AddToActiveQ(it, event);
    return;
  }
  info.error = false;
  AddToBackoffQ(it, over, event);
}

void SchedulingQueue::MoveAllToActiveOrBackoffQueue(const ClusterEvent& event) {
  MutexLock lock(mutex_);
  if (in_flight_pods_ > 0) {
    in_flight_events_.push_back(event);
    TheMetrics().events_in_flight.With({EventName(event.kind)}).Add(1);
  }
  std::vector<Pods::iterator> requeued;
  for (const auto& [events, pods] : by_registered_events_) {
    if (!(events & static_cast<uint32_t>(event.kind))) continue;
    for (const auto& [sequence, it] : pods) {
      if (hooks_.queueing_hint(it->second.unschedulable_plugins, event, *it->second.pod)) {
        requeued.push_back(it);
      }
    }
  }
  if (requeued.empty()) return;
  const std::string name = EventName(event.kind);
  for (Pods::iterator it : requeued) Requeue(it, name);
  CountPending();
}

SteadyTime SchedulingQueue::FlushLocked() {
  const SteadyTime now = clock_.SteadyNow();
  for (auto* waiting : {&backoff_q_, &error_backoff_q_, &unschedulable_pods_}) {
    std::vector<Pods::iterator> due;
    for (auto it = waiting->begin(); it != waiting->end() && it->first.first <= now; ++it) {
      due.push_back(it->second);
    }
    for (Pods::iterator it : due) {
      const bool unschedulable = it->second.place == Place::kUnschedulablePods;
      it->second.attempts.was_flushed_from_unschedulable =
          it->second.attempts.was_flushed_from_unschedulable || unschedulable;
      Leave(it);
      MoveToActiveQ(it, unschedulable ? kTimedOut : kBackoffOver);
    }
  }
  CountPending();
  SteadyTime next = now + kFlushInterval;
  for (const auto* waiting : {&backoff_q_, &error_backoff_q_, &unschedulable_pods_}) {
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
    flush_due_.notify_all();
  });
  MutexLock lock(mutex_);
  while (!stop.stop_requested()) clock_.WaitUntil(mutex_, flush_due_, FlushLocked());
}

SchedulingQueue::Location SchedulingQueue::Locate(std::string_view key) const {
  MutexLock lock(mutex_);
  const auto it = pods_.find(key);
  if (it == pods_.end()) return {};
  const QueuedPodInfo& info = it->second;
  switch (info.place) {
    case Place::kActiveQ:
      return {"active", info.unschedulable_plugins};
    case Place::kBackoffQ:
      return {"backoff", info.unschedulable_plugins};
    case Place::kUnschedulablePods:
      return {info.gated ? "gated" : "unschedulable", info.unschedulable_plugins};
    case Place::kInFlight:
      return {"in flight", info.unschedulable_plugins};
  }
  return {};
}

SchedulingQueue::Sizes SchedulingQueue::sizes() const {
  MutexLock lock(mutex_);
  return {active_q_.size(), backoff_q_.size() + error_backoff_q_.size(), unschedulable_pods_.size() - gated_,
          gated_};
}

}  // namespace keelson::scheduler
