#include "controlplane/storage/etcd_metrics.h"

#include <string>
#include <vector>

#include "lib/metrics/metrics.h"

namespace keelson::storage {

namespace {

const std::vector<std::string> kNames = {"operation", "group", "resource"};
metrics::Family& request_seconds = metrics::Histograms(
    "etcd_request_duration_seconds", "Etcd request latency in seconds for each operation and object type.",
    {0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45, 60},
    kNames);
metrics::Family& requests_total = metrics::Counter(
    "etcd_requests_total", "Etcd request counts for each operation and object type.", kNames);
metrics::Family& request_errors = metrics::Counter(
    "etcd_request_errors_total", "Etcd failed request counts for each operation and object type.", kNames);

}  // namespace

void CountEtcdCall(std::string_view operation, const api::ResourceInfo& info, SteadyTime begin, bool good) {
  const std::vector<std::string> labels = {std::string(operation), std::string(info.group),
                                           std::string(info.resource)};
  request_seconds.HistogramWith(labels).Observe(
      std::chrono::duration<double>(SteadyTime::clock::now() - begin).count());
  requests_total.With(labels).Increment();
  if (!good) request_errors.With(labels).Increment();
}

}  // namespace keelson::storage
