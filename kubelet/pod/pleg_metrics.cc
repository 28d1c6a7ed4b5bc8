#include "kubelet/pod/pleg_metrics.h"

#include <utility>

#include "kubelet/metrics/buckets.h"

namespace keelson::kubelet {

PlegMetrics::PlegMetrics()
    : duration_(metrics::Histograms("kubelet_pleg_relist_duration_seconds",
                                    "Duration in seconds for relisting pods in PLEG.", DefaultBuckets())
                    .HistogramWith()),
      interval_(metrics::Histograms("kubelet_pleg_relist_interval_seconds",
                                    "Interval in seconds between relisting in PLEG.", DefaultBuckets())
                    .HistogramWith()),
      last_seen_(metrics::Gauge("kubelet_pleg_last_seen_seconds",
                                "Timestamp in seconds when PLEG was last seen active.")
                     .With()) {
  metrics::Counter("kubelet_pleg_discard_events", "The number of discard events in PLEG.").With();
}

void PlegMetrics::Begun() {
  if (begun_) interval_.Observe(begun_->Seconds());
  begun_.emplace();
}

void PlegMetrics::Finished(WallTime now) {
  duration_.Observe(begun_->Seconds());
  last_seen_.Set(std::chrono::duration<double>(now.time_since_epoch()).count());
}

EventStreamMetrics::EventStreamMetrics()
    : errors_(metrics::Counter("kubelet_evented_pleg_connection_error_count",
                               "The number of errors encountered during the establishment of streaming "
                               "connection with the CRI runtime.")
                  .With()),
      connections_(
          metrics::Counter("kubelet_evented_pleg_connection_success_count",
                           "The number of times a streaming client was obtained to receive CRI Events.")
              .With()) {}

void EventStreamMetrics::Heard() {
  if (!std::exchange(heard_, true)) connections_.Increment();
}

}  // namespace keelson::kubelet
