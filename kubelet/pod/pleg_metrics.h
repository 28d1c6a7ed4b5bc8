// Metrics of relists: kubelet_pleg_*.
#pragma once

#include <optional>

#include "kubelet/metrics/stopwatch.h"
#include "lib/base/clock.h"
#include "lib/metrics/metrics.h"

namespace keelson::kubelet {

class PlegMetrics {  // for the relisting thread
 public:
  PlegMetrics();
  // A relist begins. Call Finished unless it fails.
  void Begun();
  void Finished(WallTime now);

 private:
  metrics::Histogram &duration_, &interval_;
  metrics::Value& last_seen_;
  std::optional<Stopwatch> begun_;
};

// Metrics of the runtime's event stream: kubelet_evented_pleg_*. For the thread that reads it.
class EventStreamMetrics {
 public:
  EventStreamMetrics();
  void Begun() { heard_ = false; }
  void Heard();  // at each event; the first one shows that the stream is established
  void Broke() { errors_.Increment(); }

 private:
  metrics::Value &errors_, &connections_;
  bool heard_ = false;
};

}  // namespace keelson::kubelet
