#include "kubelet/probe/probe_metrics.h"

#include "lib/k8s/pods/pod_util.h"
#include "lib/metrics/kubernetes_metrics.h"

namespace keelson::kubelet {

namespace {

constexpr size_t kResult = 1;  // among the labels of the total
constexpr ProbeKind kKinds[] = {ProbeKind::kStartup, ProbeKind::kLiveness, ProbeKind::kReadiness};

const char* NameOf(ProbeOutcome::Kind outcome) {
  switch (outcome) {
    case ProbeOutcome::kSuccess:
    case ProbeOutcome::kWarning:
      return "successful";
    case ProbeOutcome::kFailure:
      return "failed";
    case ProbeOutcome::kUnknown:
      return "unknown";
  }
  return "";
}

}  // namespace

const char* NameOf(ProbeKind kind) {
  switch (kind) {
    case ProbeKind::kStartup:
      return "Startup";
    case ProbeKind::kLiveness:
      return "Liveness";
    case ProbeKind::kReadiness:
      return "Readiness";
  }
  return "";
}

ProbeMetrics::ProbeMetrics()
    : total_(metrics::Type::kCounter, "prober_probe_total",
             metrics::HelpWithStability(
                 "prober_probe_total",
                 "Cumulative number of a liveness, readiness or startup probe for a container by result."),
             {"probe_type", "result", "container", "pod", "namespace", "pod_uid"}, {}),
      duration_(metrics::Type::kHistogram, "prober_probe_duration_seconds",
                metrics::HelpWithStability("prober_probe_duration_seconds",
                                           "Duration in seconds for a probe response."),
                {"probe_type", "container", "pod", "namespace"},
                {0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10}) {}

ProbeMetrics::Labels::Labels(const corev1::Pod& pod, const std::string& container, ProbeKind kind)
    : total{NameOf(kind),        "", container, pod.metadata().name(), pod.metadata().namespace_(),
            pod.metadata().uid()},
      duration{NameOf(kind), container, pod.metadata().name(), pod.metadata().namespace_()} {}

void ProbeMetrics::Count(Labels& labels, ProbeOutcome::Kind outcome, double seconds) {
  labels.total[kResult] = NameOf(outcome);
  total_.With(labels.total).Increment();
  if (outcome != ProbeOutcome::kFailure) duration_.HistogramWith(labels.duration).Observe(seconds);
}

void ProbeMetrics::Forget(const corev1::Pod& pod) {
  k8s::ForEachContainer(pod.spec(), [&](const corev1::Container& container) {
    for (ProbeKind kind : kKinds) {
      Labels labels(pod, container.name(), kind);
      for (auto outcome : {ProbeOutcome::kSuccess, ProbeOutcome::kFailure, ProbeOutcome::kUnknown}) {
        labels.total[kResult] = NameOf(outcome);
        total_.Remove(labels.total);
      }
      duration_.Remove(labels.duration);
    }
  });
}

std::string ProbeMetrics::Print() const {
  std::string out;
  duration_.Print(out);
  total_.Print(out);
  return out;
}

}  // namespace keelson::kubelet
