#include "controlplane/apiserver/admission/policy/policy_metrics.h"

#include "lib/metrics/metrics.h"

namespace keelson::apiserver::policy {
namespace {

metrics::Family& validations = metrics::Counter(
    "apiserver_validating_admission_policy_check_total",
    "Validation admission policy check total, labeled by policy and further identified by binding and "
    "enforcement action taken.",
    {"enforcement_action", "error_type", "policy", "policy_binding"});
metrics::Family& validation_seconds = metrics::Histograms(
    "apiserver_validating_admission_policy_check_duration_seconds",
    "Validation admission latency for individual validation expressions in seconds, labeled by policy and "
    "further including binding and enforcement action taken.",
    {0.0000005, 0.001, 0.01, 0.1, 1.0}, {"enforcement_action", "error_type", "policy", "policy_binding"});
metrics::Family& mutations = metrics::Counter(
    "apiserver_mutating_admission_policy_check_total",
    "Mutation admission policy check total, labeled by policy and further identified by binding.",
    {"error_type", "policy", "policy_binding"});
metrics::Family& mutation_seconds = metrics::Histograms(
    "apiserver_mutating_admission_policy_check_duration_seconds",
    "Mutation admission latency for individual mutation expressions in seconds, labeled by policy and "
    "binding.",
    {0.0000005, 0.001, 0.01, 0.1, 1.0}, {"error_type", "policy", "policy_binding"});

}  // namespace

std::string_view ErrorTypeOf(std::string_view message) {
  if (message.starts_with("compilation")) return "compile_error";
  if (message.starts_with("validation failed due to running out of cost budget")) return "out_of_budget";
  return "invalid_error";
}

void CountValidation(const std::string& policy, const std::string& binding, std::string_view error_type,
                     const char* action, std::chrono::duration<double> took) {
  const std::vector<std::string> labels = {action, std::string(error_type), policy, binding};
  validations.With(labels).Increment();
  validation_seconds.HistogramWith(labels).Observe(took.count());
}

void CountMutation(const std::string& policy, const std::string& binding, std::string_view error_type,
                   std::chrono::duration<double> took) {
  const std::vector<std::string> labels = {std::string(error_type), policy, binding};
  mutations.With(labels).Increment();
  mutation_seconds.HistogramWith(labels).Observe(took.count());
}

}  // namespace keelson::apiserver::policy
