// /metrics/cadvisor in parts, each a few families. Internal to this folder.
#pragma once

#include "kubelet/stats/metrics_text.h"
#include "kubelet/stats/summary.h"

namespace keelson::kubelet {

inline constexpr char kNodeLabels[] = "container=\"\",id=\"/\",image=\"\",name=\"\",namespace=\"\",pod=\"\"";

inline std::string Labels(const PodUsageStats& pod, const ContainerUsageStats& container) {
  const std::string& path = container.cgroup.path;
  return fmt::format("container=\"{}\",id=\"{}\",image=\"{}\",name=\"{}\",{}", container.runtime.name,
                     path.empty() ? "/" + container.id : path, container.image, container.id, PodLabels(pod));
}

// A pod's network is its sandbox's; the machine's has the id "/".
void AddNetwork(const StatsSnapshot& stats, MetricsText& text);
// The machine's, by device, and what containers have written.
void AddFileSystems(const StatsSnapshot& stats, MetricsText& text);
void AddMachine(const StatsSnapshot& stats, const MachineFacts& facts, MetricsText& text);

}  // namespace keelson::kubelet
