// Counts containers whose resources are aligned, and those rejected because theirs could not be.
#pragma once

#include "lib/metrics/metrics.h"

namespace keelson::kubelet {

// scope: container, pod. boundary: numa_node, physical_cpu, uncore_cache.
inline void CountAlignment(const char* scope, const char* boundary, bool aligned) {
  static metrics::Family& together = metrics::Counter(
      "kubelet_container_aligned_compute_resources_count",
      "Cumulative number of aligned compute resources allocated to containers by alignment type.",
      {"scope", "boundary"});
  static metrics::Family& apart = metrics::Counter(
      "kubelet_container_aligned_compute_resources_failure_count",
      "Cumulative number of failures to allocate aligned compute resources to containers by alignment type.",
      {"scope", "boundary"});
  (aligned ? together : apart).With({scope, boundary}).Increment();
}

}  // namespace keelson::kubelet
