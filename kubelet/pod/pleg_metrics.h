// How the relists go: kubelet_pleg_*.
#pragma once

#include <optional>

#include "kubelet/metrics/stopwatch.h"
#include "lib/base/clock.h"
#include "lib/metrics/metrics.h"

namespace keelson::kubelet {

class PlegMetrics {  // of the one thread that relists
 public:
  PlegMetrics();
  // A relist begins now. Its end is told through Finished, or it has failed.
  void Begun();
  void Finished(WallTime now);

 private:
  metrics::Histogram &duration_, &interval_;
  metrics::Value& last_seen_;
  std::optional<Stopwatch> begun_;
};

// How the runtime's stream of events goes: kubelet_evented_pleg_*. Of the one thread that reads it.
class EventStreamMetrics {
 public:
  EventStreamMetrics();
  void Begun() { heard_ = false; }
  void Heard();  // a stream is known to stand by its first event
  void Broke() { errors_.Increment(); }

 private:
  metrics::Value &errors_, &connections_;
  bool heard_ = false;
};

}  // namespace keelson::kubelet
