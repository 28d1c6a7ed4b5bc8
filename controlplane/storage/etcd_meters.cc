#include "controlplane/storage/etcd_meters.h"

#include <string>
#include <vector>

#include "lib/base/metrics.h"

namespace keelson::storage {

void CountEtcdCall(std::string_view operation, const api::ResourceInfo& info, SteadyTime begin, bool good) {
  static const std::vector<std::string> names = {"operation", "group", "resource"};
  static metrics::Family& seconds = metrics::Histograms(
      "etcd_request_duration_seconds", "Etcd request latency in seconds for each operation and object type.",
      {0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45, 60},
      names);
  static metrics::Family& total = metrics::Counter(
      "etcd_requests_total", "Etcd request counts for each operation and object type.", names);
  static metrics::Family& errors = metrics::Counter(
      "etcd_request_errors_total", "Etcd failed request counts for each operation and object type.", names);
  const std::vector<std::string> labels = {std::string(operation), std::string(info.group),
                                           std::string(info.resource)};
  seconds.HistogramWith(labels).Observe(
      std::chrono::duration<double>(SteadyTime::clock::now() - begin).count());
  total.With(labels).Increment();
  if (!good) errors.With(labels).Increment();
}

}  // namespace keelson::storage
