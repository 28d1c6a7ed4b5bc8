#include "kubelet/stats/metrics_text.h"
#include "kubelet/stats/summary.h"

namespace keelson::kubelet {

namespace {

std::string ContainerLabels(const PodUsageStats& pod, const ContainerUsageStats& container) {
  return fmt::format("container=\"{}\",{}", container.runtime.name, PodLabels(pod));
}

}  // namespace

std::string ResourceMetricsText(const StatsSnapshot& stats) {
  MetricsText text;
  const int64_t now = Millis(stats.time);
  text.Family("container_cpu_usage_seconds_total", "counter",
              "[STABLE] Cumulative cpu time consumed by the container in core-seconds");
  EachContainer(stats, [&](const auto& pod, const auto& item, int64_t at) {
    if (item.cpu) text.Add(ContainerLabels(pod, item), Seconds(item.cpu->core_nanos), at);
  });
  text.Family("container_memory_working_set_bytes", "gauge",
              "[STABLE] Current working set of the container in bytes");
  EachContainer(stats, [&](const auto& pod, const auto& item, int64_t at) {
    if (item.runtime.memory_working_set_bytes) {
      text.Add(ContainerLabels(pod, item), static_cast<double>(*item.runtime.memory_working_set_bytes), at);
    }
  });
  text.Family("container_start_time_seconds", "gauge",
              "[STABLE] Start time of the container since unix epoch in seconds");
  EachContainer(stats, [&](const auto& pod, const auto& item, int64_t) {
    text.Add(ContainerLabels(pod, item), static_cast<double>(item.created_at) / 1e9);
  });
  text.Family(
      "container_swap_limit_bytes", "gauge",
      "[ALPHA] Current amount of the container swap limit in bytes. Reported only on non-windows systems");
  EachContainer(stats, [&](const auto& pod, const auto& item, int64_t at) {
    if (const auto& limit = item.cgroup.usage.swap_limit_bytes) {
      text.Add(ContainerLabels(pod, item), static_cast<double>(*limit), at);
    }
  });
  text.Family(
      "container_swap_usage_bytes", "gauge",
      "[ALPHA] Current amount of the container swap usage in bytes. Reported only on non-windows systems");
  EachContainer(stats, [&](const auto& pod, const auto& item, int64_t at) {
    if (const auto& swap = item.cgroup.usage.swap_bytes) {
      text.Add(ContainerLabels(pod, item), static_cast<double>(*swap), at);
    }
  });
  text.Family("node_cpu_usage_seconds_total", "counter",
              "[STABLE] Cumulative cpu time consumed by the node in core-seconds");
  text.Add("", Seconds(stats.cpu.core_nanos), now);
  text.Family("node_memory_working_set_bytes", "gauge", "[STABLE] Current working set of the node in bytes");
  text.Add("", static_cast<double>(stats.machine.memory_working_set), now);
  text.Family("node_swap_usage_bytes", "gauge",
              "[ALPHA] Current swap usage of the node in bytes. Reported only on non-windows systems");
  text.Add("", static_cast<double>(stats.machine.swap_total - stats.machine.swap_free), now);
  text.Family("pod_cpu_usage_seconds_total", "counter",
              "[STABLE] Cumulative cpu time consumed by the pod in core-seconds");
  for (const PodUsageStats& pod : stats.pods) {
    if (pod.cpu) text.Add(PodLabels(pod), Seconds(pod.cpu->core_nanos), now);
  }
  text.Family("pod_memory_working_set_bytes", "gauge", "[STABLE] Current working set of the pod in bytes");
  for (const PodUsageStats& pod : stats.pods) {
    if (pod.cgroup.memory_working_set_bytes) {
      text.Add(PodLabels(pod), static_cast<double>(*pod.cgroup.memory_working_set_bytes), now);
    }
  }
  text.Family("pod_swap_usage_bytes", "gauge",
              "[ALPHA] Current amount of the pod swap usage in bytes. Reported only on non-windows systems");
  for (const PodUsageStats& pod : stats.pods) {
    if (pod.cgroup.swap_bytes) text.Add(PodLabels(pod), static_cast<double>(*pod.cgroup.swap_bytes), now);
  }
  text.Family("resource_scrape_error", "gauge",
              "[STABLE] 1 if there was an error while getting container metrics, 0 otherwise");
  text.Add("", 0);
  text.Family("scrape_error", "gauge",
              "[ALPHA] (Deprecated since 1.29.0) 1 if there was an error while getting container metrics, 0 "
              "otherwise");
  text.Add("", 0);
  return text.Take();
}

}  // namespace keelson::kubelet
