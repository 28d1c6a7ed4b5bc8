#include "controlplane/controllers/podautoscaler/meters.h"

#include "controlplane/controllers/common/metrics.h"

namespace keelson::controllers::podautoscaler {
namespace {

std::string TextOf(Action action) {
  return action == Action::kUp ? "scale_up" : action == Action::kDown ? "scale_down" : "none";
}
std::string TextOf(const Error* failure) {
  return !failure ? "none" : failure->Is(Code::kInvalid) ? "spec" : "internal";
}

}  // namespace

void CountReconciliation(Action action, const Error* failure, std::chrono::duration<double> took) {
  static metrics::Family& total = TheMetrics().horizontal_pod_autoscaler_reconciliations_total;
  static metrics::Family& seconds = TheMetrics().horizontal_pod_autoscaler_reconciliation_duration_seconds;
  total.With({TextOf(action), TextOf(failure)}).Increment();
  seconds.HistogramWith({TextOf(action), TextOf(failure)}).Observe(took.count());
}

void CountMetric(const std::string& type, std::optional<int32_t> replicas, int32_t current,
                 const Error* failure, std::chrono::duration<double> took) {
  static metrics::Family& total = TheMetrics().horizontal_pod_autoscaler_metric_computation_total;
  static metrics::Family& seconds =
      TheMetrics().horizontal_pod_autoscaler_metric_computation_duration_seconds;
  const Action action = !replicas || *replicas == current ? Action::kNone
                        : *replicas > current             ? Action::kUp
                                                          : Action::kDown;
  total.With({TextOf(action), TextOf(failure), type}).Increment();
  seconds.HistogramWith({TextOf(action), TextOf(failure), type}).Observe(took.count());
}

void CountAutoscaler(const api::autoscaling::v2::HorizontalPodAutoscaler* before,
                     const api::autoscaling::v2::HorizontalPodAutoscaler* after) {
  metrics::Family& desired = TheMetrics().horizontal_pod_autoscaler_desired_replicas;
  const auto labels = [](const metav1::ObjectMeta& meta) -> std::vector<std::string> {
    return {meta.namespace_(), meta.name()};
  };
  TheMetrics().horizontal_pod_autoscaler_num.With().Add((after ? 1 : 0) - (before ? 1 : 0));
  if (after) {
    desired.With(labels(after->metadata())).Set(after->status().desired_replicas());
  } else if (before) {
    desired.Remove(labels(before->metadata()));
  }
}

}  // namespace keelson::controllers::podautoscaler
