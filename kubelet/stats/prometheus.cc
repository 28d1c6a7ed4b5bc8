#include <fmt/format.h>

#include "kubelet/container/labels.h"
#include "kubelet/stats/summary.h"

namespace keelson::kubelet {

namespace {

int64_t Millis(WallTime time) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(time.time_since_epoch()).count();
}

// Families in the order of their first sample, each with its header once.
class Text {
 public:
  void Family(const char* name, const char* type, const std::string& help) {
    out_ += fmt::format("# HELP {0} {1}\n# TYPE {0} {2}\n", name, help, type);
    name_ = name;
  }
  void Add(const std::string& labels, double value, int64_t millis = 0) {
    out_ += name_;
    if (!labels.empty()) out_ += "{" + labels + "}";
    out_ += fmt::format(" {}", value);
    if (millis > 0) out_ += fmt::format(" {}", millis);
    out_ += '\n';
  }
  std::string Take() { return std::move(out_); }

 private:
  std::string out_;
  const char* name_ = "";
};

double Seconds(uint64_t nanos) { return static_cast<double>(nanos) / 1e9; }

std::string PodLabels(const PodUsageStats& pod) {
  const metav1::ObjectMeta& meta = pod.pod->metadata();
  return fmt::format("namespace=\"{}\",pod=\"{}\"", meta.namespace_(), meta.name());
}

std::string ContainerLabels(const PodUsageStats& pod, const ContainerUsageStats& container) {
  return fmt::format("container=\"{}\",{}", container.runtime.name, PodLabels(pod));
}

std::string CadvisorLabels(const PodUsageStats& pod, const ContainerUsageStats& container) {
  return fmt::format("container=\"{}\",id=\"/{}\",image=\"{}\",name=\"{}\",{}", container.runtime.name,
                     container.id, container.image, container.id, PodLabels(pod));
}

template <typename Each>
void EachContainer(const StatsSnapshot& stats, Each each) {
  for (const PodUsageStats& pod : stats.pods)
    for (const ContainerUsageStats& container : pod.containers)
      each(pod, container, container.runtime.timestamp / 1000000);
}

// Counters of what was waited for: of the machine, of pods as wholes, of containers.
void AddPressures(const StatsSnapshot& stats, Text& text) {
  using Of = std::optional<linux::Pressure> linux::CgroupPressure::*;
  using Kind = linux::Stall linux::Pressure::*;
  constexpr Kind kWaiting = &linux::Pressure::some, kStalled = &linux::Pressure::full;
  struct Row {
    const char *name, *help;
    Of of;
    Kind kind;
  };
  static constexpr Row kRows[] = {
      {"container_pressure_cpu_stalled_seconds_total",
       "Total time duration no tasks in the container could make progress due to CPU congestion.",
       &linux::CgroupPressure::cpu, kStalled},
      {"container_pressure_cpu_waiting_seconds_total",
       "Total time duration tasks in the container have waited due to CPU congestion.",
       &linux::CgroupPressure::cpu, kWaiting},
      {"container_pressure_io_stalled_seconds_total",
       "Total time duration no tasks in the container could make progress due to IO congestion.",
       &linux::CgroupPressure::io, kStalled},
      {"container_pressure_io_waiting_seconds_total",
       "Total time duration tasks in the container have waited due to IO congestion.",
       &linux::CgroupPressure::io, kWaiting},
      {"container_pressure_memory_stalled_seconds_total",
       "Total time duration no tasks in the container could make progress due to memory congestion.",
       &linux::CgroupPressure::memory, kStalled},
      {"container_pressure_memory_waiting_seconds_total",
       "Total time duration tasks in the container have waited due to memory congestion.",
       &linux::CgroupPressure::memory, kWaiting},
  };
  if (!stats.pressure.cpu && !stats.pods_pressure.cpu) return;  // v1, or a kernel that keeps no account
  const int64_t now = Millis(stats.time);
  for (const Row& row : kRows) {
    text.Family(row.name, "counter", row.help);
    auto add = [&](const std::string& labels, const linux::CgroupPressure& pressure, int64_t at) {
      if (const auto& value = pressure.*row.of)
        text.Add(labels, static_cast<double>(((*value).*row.kind).total_us) / 1e6, at);
    };
    add("container=\"\",id=\"/\",image=\"\",name=\"\",namespace=\"\",pod=\"\"", stats.pressure, now);
    for (const PodUsageStats& pod : stats.pods)
      add(fmt::format("container=\"\",id=\"{}\",image=\"\",name=\"\",{}", pod.cgroup_path, PodLabels(pod)),
          pod.pressure, now);
    EachContainer(stats, [&](const auto& pod, const auto& item, int64_t at) {
      add(CadvisorLabels(pod, item), item.cgroup.pressure, at);
    });
  }
}

}  // namespace

std::string ResourceMetricsText(const StatsSnapshot& stats) {
  Text text;
  const int64_t now = Millis(stats.time);
  text.Family("container_cpu_usage_seconds_total", "counter",
              "[STABLE] Cumulative cpu time consumed by the container in core-seconds");
  EachContainer(stats, [&](const auto& pod, const auto& item, int64_t at) {
    if (item.cpu) text.Add(ContainerLabels(pod, item), Seconds(item.cpu->core_nanos), at);
  });
  text.Family("container_memory_working_set_bytes", "gauge",
              "[STABLE] Current working set of the container in bytes");
  EachContainer(stats, [&](const auto& pod, const auto& item, int64_t at) {
    if (item.runtime.memory_working_set_bytes)
      text.Add(ContainerLabels(pod, item), static_cast<double>(*item.runtime.memory_working_set_bytes), at);
  });
  text.Family("container_start_time_seconds", "gauge",
              "[STABLE] Start time of the container since unix epoch in seconds");
  EachContainer(stats, [&](const auto& pod, const auto& item, int64_t) {
    text.Add(ContainerLabels(pod, item), static_cast<double>(item.created_at) / 1e9);
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
  for (const PodUsageStats& pod : stats.pods)
    if (pod.cpu) text.Add(PodLabels(pod), Seconds(pod.cpu->core_nanos), now);
  text.Family("pod_memory_working_set_bytes", "gauge", "[STABLE] Current working set of the pod in bytes");
  for (const PodUsageStats& pod : stats.pods)
    if (pod.cgroup.memory_working_set_bytes)
      text.Add(PodLabels(pod), static_cast<double>(*pod.cgroup.memory_working_set_bytes), now);
  text.Family("resource_scrape_error", "gauge",
              "[STABLE] 1 if there was an error while getting container metrics, 0 otherwise");
  text.Add("", 0);
  text.Family("scrape_error", "gauge",
              "[ALPHA] (Deprecated since 1.29.0) 1 if there was an error while getting container metrics, 0 "
              "otherwise");
  text.Add("", 0);
  return text.Take();
}

std::string CadvisorMetricsText(const StatsSnapshot& stats, int cpus) {
  Text text;
  text.Family("container_cpu_usage_seconds_total", "counter", "Cumulative cpu time consumed in seconds.");
  EachContainer(stats, [&](const auto& pod, const auto& item, int64_t at) {
    if (item.cpu) text.Add("cpu=\"total\"," + CadvisorLabels(pod, item), Seconds(item.cpu->core_nanos), at);
  });
  struct Gauge {
    const char* name;
    const char* help;
    std::optional<uint64_t> cri::ContainerStats::*value;
  };
  for (const Gauge& gauge :
       {Gauge{"container_memory_working_set_bytes", "Current working set in bytes.",
              &cri::ContainerStats::memory_working_set_bytes},
        {"container_memory_usage_bytes",
         "Current memory usage in bytes, including all memory regardless of when it was accessed",
         &cri::ContainerStats::memory_usage_bytes},
        {"container_memory_rss", "Size of RSS in bytes.", &cri::ContainerStats::memory_rss_bytes},
        {"container_fs_usage_bytes", "Number of bytes that are consumed by the container on this filesystem.",
         &cri::ContainerStats::writable_layer_bytes}}) {
    text.Family(gauge.name, "gauge", gauge.help);
    EachContainer(stats, [&](const auto& pod, const auto& item, int64_t at) {
      if (const auto& value = item.runtime.*gauge.value)
        text.Add(CadvisorLabels(pod, item), static_cast<double>(*value), at);
    });
  }
  text.Family("container_last_seen", "gauge", "Last time a container was seen by the exporter");
  EachContainer(stats, [&](const auto& pod, const auto& item, int64_t at) {
    text.Add(CadvisorLabels(pod, item), static_cast<double>(at / 1000), at);
  });
  text.Family("container_start_time_seconds", "gauge",
              "Start time of the container since unix epoch in seconds.");
  EachContainer(stats, [&](const auto& pod, const auto& item, int64_t at) {
    text.Add(CadvisorLabels(pod, item), static_cast<double>(item.created_at / 1000000000), at);
  });
  struct Counter {
    const char* name;
    const char* help;
    uint64_t InterfaceStats::*value;
  };
  const int64_t now = Millis(stats.time);
  for (const Counter& counter :
       {Counter{"container_network_receive_bytes_total", "Cumulative count of bytes received",
                &InterfaceStats::rx_bytes},
        {"container_network_receive_errors_total", "Cumulative count of errors encountered while receiving",
         &InterfaceStats::rx_errors},
        {"container_network_transmit_bytes_total", "Cumulative count of bytes transmitted",
         &InterfaceStats::tx_bytes},
        {"container_network_transmit_errors_total",
         "Cumulative count of errors encountered while transmitting", &InterfaceStats::tx_errors}}) {
    text.Family(counter.name, "counter", counter.help);
    for (const PodUsageStats& pod : stats.pods)
      for (const InterfaceStats& item : pod.interfaces)
        text.Add(fmt::format("container=\"\",id=\"\",image=\"\",interface=\"{}\",name=\"\",{}", item.name,
                             PodLabels(pod)),
                 static_cast<double>(item.*counter.value), now);
  }
  AddPressures(stats, text);
  text.Family("machine_cpu_cores", "gauge", "Number of logical CPU cores.");
  text.Add("", cpus);
  text.Family("machine_memory_bytes", "gauge", "Amount of memory installed on the machine.");
  text.Add("", static_cast<double>(stats.machine.memory_total));
  return text.Take();
}

}  // namespace keelson::kubelet
