// Pods that wait for a node.
//
//              Add                Pop                          no node
//   (new) ---> [active] ------------> (in flight) ----------------------> [unschedulable]
//                 ^                        |  failed by error,                  |
//                 |  back-off over         v  or an event came meanwhile        | an event that may help,
//              [backoff] <-----------------+------------------------------------+ or 5 minutes
//
// While [active] is empty Pop takes from [backoff] what was unschedulable: waiting helps nobody then. What
// has failed by error waits out its time. Pods that a PreEnqueue plugin does not admit (scheduling gates)
// wait in [unschedulable] until they are changed or activated; no event is shown to them.
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
  std::chrono::nanoseconds max_unschedulable{std::chrono::minutes(5)};
};

// What a pod has been through on its way to a node.
struct Attempts {
  int all = 0;            // so far
  int rejections = 0;     // that found no node
  int errors = 0;         // that failed otherwise, since the last rejection
  SteadyTime first = {};  // when the pod came
  bool flushed = false;   // tried again without an event that was to help
};

class SchedulingQueue {  // thread safe
 public:
  // What the plugins say; called under the queue's lock.
  struct Hooks {
    // Whether `event` may help a pod that these plugins have ruled out.
    std::function<bool(const std::vector<std::string_view>& rejected_by, const ClusterEvent& event,
                       const PodInfo& pod)>
        may_help;
    // Kinds of events, as bits, that may_help would ever say yes to; absent: all.
    std::function<uint32_t(const std::vector<std::string_view>& rejected_by, const PodInfo& pod)> interests;
    // Whether the pod may be tried at all; absent: if it has no gates.
    std::function<bool(const PodInfo& pod)> admits;
  };
  SchedulingQueue(Clock& clock, QueueOptions options, Hooks hooks);

  // A pod without a node is new or has changed (`spec_changed`: in a way that matters to scheduling).
  void Set(PodPtr pod, bool spec_changed);
  // It has a node, or is gone.
  void Remove(std::string_view key);

  // Tries the pod again, now: whatever it waits for does not matter any more.
  void Activate(std::string_view key);

  // Blocks for the next pod: highest priority first, then the longest waiting. nullopt on `stop`.
  std::optional<PodPtr> Pop(std::stop_token stop);
  // The pod that was popped has got a node, or is of no more interest. Returns what it has been through.
  Attempts Done(std::string_view key);
  // No node was right for it. It waits for an event that may help, or for back-off when one came meanwhile.
  void Unschedulable(const PodPtr& pod, std::vector<std::string_view> rejected_by);
  // Something else went wrong, maybe after Done, which gave `before`: another try after back-off.
  void Retry(const PodPtr& pod, const Attempts& before = {});

  // Wakes the pods that `event` may help.
  void Notify(const ClusterEvent& event);
  // Moves what has waited long enough. Returns when to call again at the latest.
  SteadyTime Flush();
  // Flushes when due, until `stop`.
  void Run(std::stop_token stop);

  // "active", "backoff", "unschedulable", "gated" or "in flight", and who ruled it out; "" when it is not
  // here.
  struct Standing {
    std::string place;
    std::vector<std::string_view> rejected_by;
  };
  Standing StandingOf(std::string_view key) const;

  struct Sizes {
    size_t active, backoff, unschedulable, gated;
  };
  Sizes sizes() const;

 private:
  enum class Place { kActive, kBackoff, kUnschedulable, kInFlight };
  struct Entry {
    PodPtr pod;
    Place place = Place::kActive;
    SteadyTime queued;      // since when it waits for its turn
    SteadyTime due;         // kBackoff: when it ends; kUnschedulable: when to try anyway
    uint64_t sequence = 0;  // of arrival
    Attempts attempts;
    std::vector<std::string_view> rejected_by;
    uint32_t interests = 0;    // in events, while kUnschedulable
    bool error = false;        // kBackoff: something went wrong
    bool counted = false;      // in the metric of pods that plugins have ruled out
    uint64_t first_event = 0;  // kInFlight: the events from here on have happened since Pop
    bool changed = false;      // kInFlight: replaced meanwhile
    bool gated = false;        // kUnschedulable: not admitted when last asked; counted in gated_
  };
  struct Order {  // of active pods
    int32_t priority;
    SteadyTime queued;
    uint64_t sequence;
    bool operator<(const Order& other) const {
      if (priority != other.priority) return priority > other.priority;
      if (queued != other.queued) return queued < other.queued;
      return sequence < other.sequence;
    }
  };
  using Entries = std::map<std::string, Entry, std::less<>>;
  using Due = std::pair<SteadyTime, uint64_t>;  // and the sequence, which is unique

  static Due DueOf(const Entry& entry) { return {entry.due, entry.sequence}; }
  static Order OrderOf(const Entry& entry) { return {entry.pod->priority, entry.queued, entry.sequence}; }
  bool Admits(const PodInfo& pod) const { return hooks_.admits ? hooks_.admits(pod) : !pod.gated(); }
  std::map<Due, Entries::iterator>& BackoffMapOf(const Entry& entry) REQUIRES(mutex_) {
    return entry.error ? failed_ : backoff_;
  }
  std::chrono::nanoseconds BackoffOf(const Entry& entry) const;
  void Leave(Entries::iterator it) REQUIRES(mutex_);
  // `event`: why, for metrics.
  void Activate(Entries::iterator it, std::string_view event) REQUIRES(mutex_);
  void BackOff(Entries::iterator it, SteadyTime due, std::string_view event) REQUIRES(mutex_);
  void Park(Entries::iterator it, std::string_view event) REQUIRES(mutex_);
  void Wake(Entries::iterator it, std::string_view event) REQUIRES(mutex_);
  void ActivateOrPark(Entries::iterator it, std::string_view event) REQUIRES(mutex_);
  void CountRejections(Entry& entry, bool rejected) REQUIRES(mutex_);
  void CountPending() REQUIRES(mutex_);
  void ForgetEvents() REQUIRES(mutex_);
  SteadyTime FlushLocked() REQUIRES(mutex_);

  Clock& clock_;
  const QueueOptions options_;
  const Hooks hooks_;
  mutable Mutex mutex_;
  CondVar ready_;    // a pod for Pop
  CondVar changed_;  // something to flush earlier
  Entries entries_ GUARDED_BY(mutex_);
  std::map<Order, Entries::iterator> active_ GUARDED_BY(mutex_);
  std::map<Due, Entries::iterator> backoff_ GUARDED_BY(mutex_);
  std::map<Due, Entries::iterator> failed_ GUARDED_BY(mutex_);  // backing off after an error
  std::map<Due, Entries::iterator> unschedulable_ GUARDED_BY(mutex_);
  // The unschedulable ones again, but those that are gated, by what may help them.
  std::map<uint32_t, std::map<uint64_t, Entries::iterator>> by_interest_ GUARDED_BY(mutex_);
  size_t in_flight_ GUARDED_BY(mutex_) = 0;
  size_t gated_ GUARDED_BY(mutex_) = 0;
  // Events since the oldest pod in flight was popped.
  std::deque<ClusterEvent> events_ GUARDED_BY(mutex_);
  uint64_t events_begin_ GUARDED_BY(mutex_) = 0;
  uint64_t sequence_ GUARDED_BY(mutex_) = 0;
};

}  // namespace keelson::scheduler
