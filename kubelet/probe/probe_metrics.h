// Metrics of /metrics/probes: prober_probe_total and prober_probe_duration_seconds. Thread safe.
#pragma once

#include <string>
#include <vector>

#include "kubelet/probe/handler.h"
#include "kubelet/probe/results.h"
#include "lib/metrics/metrics.h"

namespace keelson::kubelet {

const char* NameOf(ProbeKind kind);  // Startup, Liveness, Readiness

class ProbeMetrics {
 public:
  ProbeMetrics();
  // Label values of one probe, made once.
  struct Labels {
    Labels(const corev1::Pod& pod, const std::string& container, ProbeKind kind);
    std::vector<std::string> total, duration;
  };
  void Count(Labels& labels, ProbeOutcome::Kind outcome, double seconds);
  // Removes the pod's samples.
  void Forget(const corev1::Pod& pod);
  std::string Print() const;

 private:
  metrics::Family total_, duration_;
};

}  // namespace keelson::kubelet
