// Metrics of merged documents, with kube-aggregator's names.
#pragma once

#include <chrono>
#include <string>

namespace keelson::apiserver {

// What became of a service's part of the OpenAPI document of version 2, or of the number of parts.
enum class PartChange { kAdd, kUpdate, kDelete };

// aggregator_openapi_v2_regeneration_count
void CountOpenApiChange(const std::string& service, PartChange change);
// aggregator_openapi_v2_regeneration_duration: of the latest merge.
void ObserveOpenApiMerge(PartChange change, std::chrono::nanoseconds took);
// aggregator_discovery_aggregation_count_total
void CountAggregatedDiscovery();

}  // namespace keelson::apiserver
