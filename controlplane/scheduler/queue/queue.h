// The scheduling queue: pods that wait for a node.
//
//          AddOrUpdate           Pop                          no node fits
//   (new) ---> [activeQ] ------------> (in flight) ----------------------> [unschedulablePods]
//                  ^                        |  failed by an error,              |
//                  |  back-off over         v  or an event came meanwhile       | an event with a hint Queue,
//              [backoffQ] <-----------------+-----------------------------------+ or 5 minutes
//
// While activeQ is empty, Pop also takes unschedulable pods from backoffQ early. Pods that failed by an error
// wait out their back-off. Pods that a PreEnqueue plugin rejects (scheduling gates) stay in unschedulablePods
// until they change or are activated; no event is matched against them.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "controlplane/scheduler/framework/framework.h"
#include "lib/base/clock.h"
#include "lib/base/mutex.h"

namespace keelson::scheduler {

struct QueueOptions {
  std::chrono::nanoseconds initial_backoff{std::chrono::seconds(1)};
  std::chrono::nanoseconds max_backoff{std::chrono::seconds(10)};
  std::chrono::nanoseconds pod_max_in_unschedulable_pods_duration{std::chrono::minutes(5)};
};

// A pod's scheduling attempts so far.
struct AttemptCounts {
  int attempts = 0;
  int unschedulable_count = 0;       // attempts that found no node
  int consecutive_errors_count = 0;  // attempts that failed by an error since the last that found no node
  SteadyTime initial_attempt_timestamp = {};  // when the pod entered the queue
  bool was_flushed_from_unschedulable = false;
};

class SchedulingQueue {  // thread safe
 public:
  // The plugins' part; called with the queue's lock held.
  struct Hooks {
    // Whether `event` may make a pod schedulable that these plugins have rejected.
    std::function<bool(const std::vector<std::string_view>& unschedulable_plugins, const ClusterEvent& event,
                       const PodInfo& pod)>
        queueing_hint;
    // The kinds of events, as bits, that queueing_hint is to be called with; absent: all.
    std::function<uint32_t(const std::vector<std::string_view>& unschedulable_plugins, const PodInfo& pod)>
        events_to_register;
    // Whether the pod may enter activeQ; absent: if it has no scheduling gates.
    std::function<bool(const PodInfo& pod)> pre_enqueue;
  };
  SchedulingQueue(Clock& clock, QueueOptions options, Hooks hooks);

  // Adds a pod that has no node, or replaces it. `spec_changed`: the pod may be schedulable now, so it leaves
  // unschedulablePods.
  void AddOrUpdate(PodPtr pod, bool spec_changed);
  // Removes a pod that has a node, or is gone. No-op when it is not here.
  void Delete(std::string_view key);
  // Moves a pod to activeQ whatever it waits for. One in flight is tried again after its attempt.
  void Activate(std::string_view key);

  // Blocks for the next pod, the one with the highest priority and of these the one that waited longest; it is
  // in flight then. nullopt on `stop`.
  std::optional<PodPtr> Pop(std::stop_token stop);
  // Removes a pod in flight. Returns its attempts; zeros when it was not in flight.
  AttemptCounts Done(std::string_view key);
  // Ends the attempt of a pod in flight that no node fits. The pod goes to unschedulablePods, or to backoffQ
  // when an event since Pop has a hint Queue. No-op when the pod is not in flight.
  void AddUnschedulablePodIfNotPresent(const PodPtr& pod,
                                       std::vector<std::string_view> unschedulable_plugins);
  // Ends an attempt that failed by an error: the pod goes to backoffQ. Also after Done(), whose result is
  // `before` then. No-op when the pod waits here already.
  void RetryAfterError(const PodPtr& pod, const AttemptCounts& before = {});

  // Moves the unschedulable pods for which `event` has a hint Queue to activeQ, or to backoffQ while their
  // back-off lasts.
  void MoveAllToActiveOrBackoffQueue(const ClusterEvent& event);
  // Moves pods whose back-off is over, and those that have been unschedulable for too long, to activeQ.
  // Returns the latest time for the next call.
  SteadyTime Flush();
  // Calls Flush() when due, until `stop`.
  void Run(std::stop_token stop);

  // Where a pod is: "active", "backoff", "unschedulable", "gated" or "in flight"; "" when it is not here.
  struct Location {
    std::string queue;
    std::vector<std::string_view> unschedulable_plugins;  // of its last attempt
  };
  Location Locate(std::string_view key) const;

  struct Sizes {
    size_t active, backoff, unschedulable, gated;
  };
  Sizes sizes() const;

 private:
  enum class Place { kActiveQ, kBackoffQ, kUnschedulablePods, kInFlight };
  struct QueuedPodInfo {
    PodPtr pod;
    Place place = Place::kActiveQ;
    SteadyTime timestamp;   // when it entered activeQ
    SteadyTime due;         // kBackoffQ: end of the back-off; kUnschedulablePods: when Flush() moves it
    uint64_t sequence = 0;  // of arrival
    AttemptCounts attempts;
    std::vector<std::string_view> unschedulable_plugins;
    uint32_t registered_events = 0;  // kUnschedulablePods: kinds that queueing_hint is called with
    bool error = false;              // kBackoffQ: the attempt failed by an error
    bool counted = false;            // in scheduler_unschedulable_pods
    uint64_t first_event = 0;        // kInFlight: the first event since Pop
    bool requeue = false;            // kInFlight: changed or activated meanwhile
    bool gated = false;              // kUnschedulablePods: rejected by PreEnqueue; counted in gated_
  };
  struct Order {  // of activeQ
    int32_t priority;
    SteadyTime timestamp;
    uint64_t sequence;
    bool operator<(const Order& other) const {
      if (priority != other.priority) return priority > other.priority;
      if (timestamp != other.timestamp) return timestamp < other.timestamp;
      return sequence < other.sequence;
    }
  };
  using Pods = std::map<std::string, QueuedPodInfo, std::less<>>;
  using Due = std::pair<SteadyTime, uint64_t>;  // and the sequence, which is unique

  static Due DueOf(const QueuedPodInfo& info) { return {info.due, info.sequence}; }
  static Order OrderOf(const QueuedPodInfo& info) {
    return {info.pod->priority, info.timestamp, info.sequence};
  }
  bool RunPreEnqueuePlugins(const PodInfo& pod) const {
    return hooks_.pre_enqueue ? hooks_.pre_enqueue(pod) : !pod.gated();
  }
  std::map<Due, Pods::iterator>& BackoffQOf(const QueuedPodInfo& info) KEELSON_REQUIRES(mutex_) {
    return info.error ? error_backoff_q_ : backoff_q_;
  }
  std::chrono::nanoseconds BackoffDuration(const QueuedPodInfo& info) const;
  // Takes the pod out of the queue that it is in. It has to enter another, or be erased.
  void Leave(Pods::iterator it) KEELSON_REQUIRES(mutex_);
  // `event` is the metrics' name of the reason.
  void AddToActiveQ(Pods::iterator it, std::string_view event) KEELSON_REQUIRES(mutex_);
  void AddToBackoffQ(Pods::iterator it, SteadyTime due, std::string_view event) KEELSON_REQUIRES(mutex_);
  void AddToUnschedulablePods(Pods::iterator it, std::string_view event) KEELSON_REQUIRES(mutex_);
  // To activeQ, or to unschedulablePods when PreEnqueue rejects the pod.
  void MoveToActiveQ(Pods::iterator it, std::string_view event) KEELSON_REQUIRES(mutex_);
  // From unschedulablePods to activeQ or backoffQ.
  void Requeue(Pods::iterator it, std::string_view event) KEELSON_REQUIRES(mutex_);
  void CountUnschedulable(QueuedPodInfo& info, bool unschedulable) KEELSON_REQUIRES(mutex_);
  void CountPending() KEELSON_REQUIRES(mutex_);
  void DropInFlightEvents() KEELSON_REQUIRES(mutex_);
  SteadyTime FlushLocked() KEELSON_REQUIRES(mutex_);

  Clock& clock_;
  const QueueOptions options_;
  const Hooks hooks_;
  mutable Mutex mutex_;
  CondVar ready_;      // a pod for Pop
  CondVar flush_due_;  // a pod entered that has to be flushed earlier
  Pods pods_ KEELSON_GUARDED_BY(mutex_);
  std::map<Order, Pods::iterator> active_q_ KEELSON_GUARDED_BY(mutex_);
  std::map<Due, Pods::iterator> backoff_q_ KEELSON_GUARDED_BY(mutex_);
  std::map<Due, Pods::iterator> error_backoff_q_ KEELSON_GUARDED_BY(mutex_);
  std::map<Due, Pods::iterator> unschedulable_pods_ KEELSON_GUARDED_BY(mutex_);
  // The unschedulable pods that are not gated, by registered_events and sequence.
  std::map<uint32_t, std::map<uint64_t, Pods::iterator>> by_registered_events_ KEELSON_GUARDED_BY(mutex_);
  size_t in_flight_pods_ KEELSON_GUARDED_BY(mutex_) = 0;
  size_t gated_ KEELSON_GUARDED_BY(mutex_) = 0;
  // Events since the oldest pod in flight was popped; the first one is number in_flight_events_begin_.
  std::deque<ClusterEvent> in_flight_events_ KEELSON_GUARDED_BY(mutex_);
  uint64_t in_flight_events_begin_ KEELSON_GUARDED_BY(mutex_) = 0;
  uint64_t sequence_ KEELSON_GUARDED_BY(mutex_) = 0;
};

}  // namespace keelson::scheduler
