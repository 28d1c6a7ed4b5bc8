#include "controlplane/controllers/podautoscaler/meters.h"

#include "lib/base/metrics.h"

namespace keelson::controllers::podautoscaler {
namespace {

std::string TextOf(Action action) {
  return action == Action::kUp ? "scale_up" : action == Action::kDown ? "scale_down" : "none";
}
std::string TextOf(const Error* failure) {
  return !failure ? "none" : failure->Is(Code::kInvalid) ? "spec" : "internal";
}
std::vector<double> Buckets() { return metrics::ExponentialBuckets(0.001, 2, 15); }

}  // namespace

void CountReconciliation(Action action, const Error* failure, std::chrono::duration<double> took) {
  static metrics::Family& total =
      metrics::Counter("horizontal_pod_autoscaler_controller_reconciliations_total",
                       "Number of reconciliations of HPA controller.", {"action", "error"});
  static metrics::Family& seconds = metrics::Histograms(
      "horizontal_pod_autoscaler_controller_reconciliation_duration_seconds",
      "The time(seconds) that the HPA controller takes to reconcile once.", Buckets(), {"action", "error"});
  total.With({TextOf(action), TextOf(failure)}).Increment();
  seconds.HistogramWith({TextOf(action), TextOf(failure)}).Observe(took.count());
}

void CountMetric(const std::string& type, std::optional<int32_t> replicas, int32_t current,
                 const Error* failure, std::chrono::duration<double> took) {
  static metrics::Family& total =
      metrics::Counter("horizontal_pod_autoscaler_controller_metric_computation_total",
                       "Number of metric computations.", {"action", "error", "metric_type"});
  static metrics::Family& seconds =
      metrics::Histograms("horizontal_pod_autoscaler_controller_metric_computation_duration_seconds",
                          "The time(seconds) that the HPA controller takes to calculate one metric.",
                          Buckets(), {"action", "error", "metric_type"});
  const Action action = !replicas || *replicas == current ? Action::kNone
                        : *replicas > current             ? Action::kUp
                                                          : Action::kDown;
  total.With({TextOf(action), TextOf(failure), type}).Increment();
  seconds.HistogramWith({TextOf(action), TextOf(failure), type}).Observe(took.count());
}

}  // namespace keelson::controllers::podautoscaler
