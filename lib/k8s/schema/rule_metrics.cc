#include "lib/k8s/schema/rule_metrics.h"

#include "lib/metrics/metrics.h"

namespace keelson::k8s {

namespace {

// Made on first use: programs without custom resources share this library, and have no such metrics.
struct Metrics {
  static metrics::Histogram& Seconds(const char* name, const char* help) {
    return metrics::Histograms(name, help, {0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10})
        .HistogramWith();
  }

  metrics::Histogram& compilation =
      Seconds("apiserver_cel_compilation_duration_seconds", "CEL compilation time in seconds.");
  metrics::Histogram& evaluation =
      Seconds("apiserver_cel_evaluation_duration_seconds", "CEL evaluation time in seconds.");
};

Metrics& TheMetrics() {
  static Metrics metrics;
  return metrics;
}

}  // namespace

void RegisterRuleMetrics() { TheMetrics(); }
void ObserveRuleCompilation(std::chrono::duration<double> took) {
  TheMetrics().compilation.Observe(took.count());
}
void ObserveRuleEvaluation(std::chrono::duration<double> took) {
  TheMetrics().evaluation.Observe(took.count());
}

}  // namespace keelson::k8s
