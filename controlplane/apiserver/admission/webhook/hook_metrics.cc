#include "controlplane/apiserver/admission/webhook/hook_metrics.h"

#include <algorithm>

#include "controlplane/apiserver/admission/admission.h"
#include "lib/metrics/metrics.h"

namespace keelson::apiserver::webhook {
namespace {

constexpr int kMaxCode = 600;

metrics::Family& call_seconds = metrics::Histograms(
    "apiserver_admission_webhook_admission_duration_seconds",
    "Admission webhook latency histogram in seconds, identified by name and broken out for each operation "
    "and API resource and type (validate or admit).",
    {0.005, 0.025, 0.1, 0.5, 1.0, 2.5, 10, 25}, {"name", "operation", "rejected", "type"});
metrics::Family& calls = metrics::Counter(
    "apiserver_admission_webhook_request_total",
    "Admission webhook request total, identified by name and broken out for each admission type (validating "
    "or mutating) and operation. Additional labels specify whether the request was rejected or not and an "
    "HTTP status code. Codes greater than 600 are truncated to 600, to keep the metrics cardinality bounded.",
    {"code", "name", "operation", "rejected", "type"});
metrics::Family& rejections = metrics::Counter(
    "apiserver_admission_webhook_rejection_count",
    "Admission webhook rejection count, identified by name and broken out for each admission type "
    "(validating or admit) and operation. Additional labels specify an error type (calling_webhook_error or "
    "apiserver_internal_error if an error occurred; no_error otherwise) and optionally a non-zero rejection "
    "code if the webhook rejects the request with an HTTP status code (honored by the apiserver when the "
    "code is greater or equal to 400). Codes greater than 600 are truncated to 600, to keep the metrics "
    "cardinality bounded.",
    {"error_type", "name", "operation", "rejection_code", "type"});
metrics::Family& fail_open =
    metrics::Counter("apiserver_admission_webhook_fail_open_count",
                     "Admission webhook fail open count, identified by name and broken out for each "
                     "admission type (validating or mutating).",
                     {"name", "type"});

constexpr const char* kErrorTypes[] = {"", "no_error", "calling_webhook_error", "apiserver_internal_error"};

}  // namespace

void CountCall(std::string_view hook, registry::Operation operation, std::string_view type,
               std::chrono::duration<double> took, int code, RejectionType rejection) {
  const std::string name(hook), op(NameOf(operation)), kind(type);
  const std::string shown = std::to_string(std::min(code, kMaxCode));
  const std::string rejected = rejection == RejectionType::kNone ? "false" : "true";
  call_seconds.HistogramWith({name, op, rejected, kind}).Observe(took.count());
  calls.With({shown, name, op, rejected, kind}).Increment();
  if (rejection == RejectionType::kNone) return;
  rejections.With({kErrorTypes[static_cast<size_t>(rejection)], name, op, shown, kind}).Increment();
}

void CountFailOpen(std::string_view hook, std::string_view type) {
  fail_open.With({std::string(hook), std::string(type)}).Increment();
}

}  // namespace keelson::apiserver::webhook
