// What the scheduler counts and times, under kube-scheduler's names (Kubernetes Metrics Reference, 1.36).
// Everything here is thread safe.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <string>
#include <string_view>

#include "controlplane/scheduler/framework/framework.h"
#include "lib/metrics/metrics.h"

namespace keelson::scheduler {

// All families are made together, so that each is there before the first pod.
struct Metrics {
  metrics::Family& attempts = metrics::Counter(
      "scheduler_schedule_attempts_total",
      "Number of attempts to schedule pods, by the result. 'unschedulable' means a pod could not be "
      "scheduled, while 'error' means an internal scheduler problem.",
      {"result", "profile"});
  metrics::Family& attempt_duration =
      metrics::Histograms("scheduler_scheduling_attempt_duration_seconds",
                          "Scheduling attempt latency in seconds (scheduling algorithm + binding)",
                          metrics::ExponentialBuckets(0.001, 2, 15), {"result", "profile"});
  metrics::Family& algorithm_duration = metrics::Histograms("scheduler_scheduling_algorithm_duration_seconds",
                                                            "Scheduling algorithm latency in seconds",
                                                            metrics::ExponentialBuckets(0.001, 2, 15));
  metrics::Family& decision_duration =  // the same, in finer bounds
      metrics::Histograms("keelson_scheduler_decision_duration_seconds", "Time to choose a node.",
                          metrics::ExponentialBuckets(0.00001, 2, 18));
  metrics::Family& point_duration = metrics::Histograms(
      "scheduler_framework_extension_point_duration_seconds",
      "Latency for running all plugins of a specific extension point.",
      metrics::ExponentialBuckets(0.0001, 2, 12), {"extension_point", "status", "profile"});
  metrics::Family& pod_attempts = metrics::Histograms("scheduler_pod_scheduling_attempts",
                                                      "Number of attempts to successfully schedule a pod.",
                                                      metrics::ExponentialBuckets(1, 2, 5));
  metrics::Family& pod_duration = metrics::Histograms(
      "scheduler_pod_scheduling_sli_duration_seconds",
      "E2e latency for a pod being scheduled, from the time the pod enters the scheduling queue and might "
      "involve multiple scheduling attempts.",
      metrics::ExponentialBuckets(0.01, 2, 20), {"attempts"});
  metrics::Family& after_flush =
      metrics::Counter("scheduler_pod_scheduled_after_flush_total",
                       "Number of pods that were scheduled after they had waited in the unschedulable queue "
                       "for the longest time that a pod may.");
  metrics::Family& pending =
      metrics::Gauge("scheduler_pending_pods", "Number of pending pods, by the queue type.", {"queue"});
  metrics::Family& incoming = metrics::Counter(
      "scheduler_queue_incoming_pods_total",
      "Number of pods added to scheduling queues by event and queue type.", {"queue", "event"});
  metrics::Family& unschedulable =
      metrics::Gauge("scheduler_unschedulable_pods",
                     "The number of unschedulable pods broken down by plugin name.", {"plugin", "profile"});
  metrics::Family& preemptions = metrics::Counter("scheduler_preemption_attempts_total",
                                                  "Total preemption attempts in the cluster till now");
  metrics::Family& victims =
      metrics::Histograms("scheduler_preemption_victims", "Number of selected preemption victims",
                          metrics::ExponentialBuckets(1, 2, 7));
  metrics::Family& cache_size =
      metrics::Gauge("scheduler_cache_size",
                     "Number of nodes, pods, and assumed (bound) pods in the scheduler cache.", {"type"});
  metrics::Family& event_duration =
      metrics::Histograms("scheduler_event_handling_duration_seconds", "Event handling latency in seconds.",
                          metrics::ExponentialBuckets(0.0001, 2, 12), {"event"});
  metrics::Family& events_in_flight = metrics::Gauge(
      "scheduler_inflight_events", "Number of events currently tracked in the scheduling queue.", {"event"});
  metrics::Family& permit_wait =
      metrics::Histograms("scheduler_permit_wait_duration_seconds", "Duration of waiting on permit.",
                          metrics::ExponentialBuckets(0.001, 2, 15), {"result"});
};
Metrics& TheMetrics();

using PointTime = std::chrono::steady_clock::time_point;
inline double SecondsSince(PointTime start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// The durations of a profile's extension points. Thread safe; takes no lock but the first time for a point and
// status.
class ExtensionPointTimes {
 public:
  explicit ExtensionPointTimes(std::string profile) : profile_(std::move(profile)) {}
  // `point`: "PreFilter".
  enum Point {
    kPreFilter,
    kFilter,
    kPostFilter,
    kPreScore,
    kScore,
    kReserve,
    kPermit,
    kPreBind,
    kBind,
    kCount
  };
  void Observe(Point point, Status::Code code, PointTime start) const;

 private:
  static constexpr size_t kCodes = 6;  // of Status::Code
  const std::string profile_;
  mutable std::array<std::array<std::atomic<metrics::Histogram*>, kCodes>, kCount> known_{};
};

// The event's name in metrics: "NodeAdd".
std::string EventName(ClusterEvent::Kind kind);

}  // namespace keelson::scheduler
