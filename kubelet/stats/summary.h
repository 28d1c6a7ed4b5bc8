// The two forms that usage is shown in. Pure.
#pragma once

#include <string>

#include "kubelet/stats/provider.h"

namespace keelson::kubelet {

// stats.v1alpha1.Summary, of /stats/summary. `cpu_and_memory_only`: as ?only_cpu_and_memory=true.
std::string SummaryJson(const StatsSnapshot& stats, const std::string& node_name, bool cpu_and_memory_only);
// Prometheus text of /metrics/resource and of /metrics/cadvisor.
std::string ResourceMetricsText(const StatsSnapshot& stats);
std::string CadvisorMetricsText(const StatsSnapshot& stats, int cpus);

}  // namespace keelson::kubelet
