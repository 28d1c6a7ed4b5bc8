// Parts of /metrics/cadvisor, a few families each. Internal to this folder.
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

// Network of pods, labelled as their sandboxes, and of the machine, with the id "/".
void AddNetwork(const StatsSnapshot& stats, MetricsText& text);
// File systems of the machine, by device, and block I/O of containers.
void AddFileSystems(const StatsSnapshot& stats, MetricsText& text);
void AddMachine(const StatsSnapshot& stats, const MachineFacts& facts, MetricsText& text);

}  // namespace keelson::kubelet
