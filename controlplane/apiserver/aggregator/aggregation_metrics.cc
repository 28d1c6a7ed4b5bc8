#include "controlplane/apiserver/aggregator/aggregation_metrics.h"

#include "lib/metrics/metrics.h"

namespace keelson::apiserver {
namespace {

metrics::Family& openapi_changes = metrics::Counter(
    "aggregator_openapi_v2_regeneration_count",
    "Counter of OpenAPI v2 spec regeneration count broken down by causing APIService name and reason.",
    {"apiservice", "reason"});
metrics::Family& openapi_merge_seconds =
    metrics::Gauge("aggregator_openapi_v2_regeneration_duration",
                   "Gauge of OpenAPI v2 spec regeneration duration in seconds.", {"reason"});
metrics::Family& discovery_aggregations = metrics::Counter(
    "aggregator_discovery_aggregation_count_total", "Counter of number of times discovery was aggregated");

const char* ReasonOf(PartChange change) {
  return change == PartChange::kAdd ? "add" : change == PartChange::kUpdate ? "update" : "delete";
}

}  // namespace

void CountOpenApiChange(const std::string& service, PartChange change) {
  openapi_changes.With({service, ReasonOf(change)}).Increment();
}

void ObserveOpenApiMerge(PartChange change, std::chrono::nanoseconds took) {
  openapi_merge_seconds.With({ReasonOf(change)}).Set(std::chrono::duration<double>(took).count());
}

void CountAggregatedDiscovery() { discovery_aggregations.With().Increment(); }

}  // namespace keelson::apiserver
