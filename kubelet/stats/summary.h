// Formats a StatsSnapshot. Pure.
#pragma once

#include <string>

#include "kubelet/stats/provider.h"

namespace keelson::kubelet {

// stats.v1alpha1.Summary, of /stats/summary. `cpu_and_memory_only`: as ?only_cpu_and_memory=true.
std::string SummaryJson(const StatsSnapshot& stats, const std::string& node_name, bool cpu_and_memory_only);
// Prometheus text of /metrics/resource and of /metrics/cadvisor.
std::string ResourceMetricsText(const StatsSnapshot& stats);
struct MachineFacts {
  int cpus = 0, cores = 0, sockets = 0;
  std::string machine_id, system_uuid, boot_id, kernel_version, os_image;
};
std::string CadvisorMetricsText(const StatsSnapshot& stats, const MachineFacts& machine);

}  // namespace keelson::kubelet
