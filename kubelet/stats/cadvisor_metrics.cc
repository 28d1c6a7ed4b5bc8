// /metrics/cadvisor: the names and labels that dashboards and recording rules know from cAdvisor.
#include "kubelet/stats/cadvisor_parts.h"

namespace keelson::kubelet {

namespace {

using Number = std::optional<uint64_t>;

std::string Labels(const PodUsageStats& pod) {
  return fmt::format("container=\"\",id=\"{}\",image=\"\",name=\"\",{}", pod.cgroup_path, PodLabels(pod));
}

// Dashboards add it up: a kernel that keeps no account of swap has none to tell.
Number SwapOf(const ContainerUsageStats& item) {
  const Number& bytes = item.account.swap_bytes;
  return item.cgroup.path.empty() ? bytes : bytes.value_or(0);
}

// One number a container. `scale`: the kernel's unit over the metric's.
struct Row {
  const char *name, *type, *help;
  Number (*value)(const ContainerUsageStats&);
  double scale = 1;
};

constexpr Row kRows[] = {
    {"container_cpu_user_seconds_total", "counter", "Cumulative user cpu time consumed in seconds.",
     [](const auto& item) { return item.account.cpu_user_nanos; }, 1e9},
    {"container_cpu_system_seconds_total", "counter", "Cumulative system cpu time consumed in seconds.",
     [](const auto& item) { return item.account.cpu_system_nanos; }, 1e9},
    {"container_memory_cache", "gauge", "Number of bytes of page cache memory.",
     [](const auto& item) { return item.account.cache_bytes; }},
    {"container_memory_mapped_file", "gauge", "Size of memory mapped files in bytes.",
     [](const auto& item) { return item.account.mapped_file_bytes; }},
    {"container_memory_swap", "gauge", "Container swap usage in bytes.",
     [](const auto& item) { return SwapOf(item); }},
    {"container_memory_max_usage_bytes", "gauge", "Maximum memory usage recorded in bytes",
     [](const auto& item) { return item.account.memory_peak_bytes; }},
    {"container_memory_failcnt", "counter", "Number of memory usage hits limits",
     [](const auto& item) { return item.account.memory_limit_hits; }},
    {"container_oom_events_total", "counter", "Count of out of memory events observed for the container",
     [](const auto& item) { return item.account.oom_kills; }},
    {"container_processes", "gauge", "Number of processes running inside the container.",
     [](const auto& item) { return item.account.processes; }},
    {"container_threads", "gauge", "Number of threads running inside the container",
     [](const auto& item) { return item.cgroup.usage.processes; }},
    {"container_spec_cpu_period", "gauge", "CPU period of the container.",
     [](const auto& item) { return item.account.cpu_period_us; }},
    {"container_spec_cpu_quota", "gauge", "CPU quota of the container.",
     [](const auto& item) { return item.account.cpu_quota_us; }},
    {"container_spec_cpu_shares", "gauge", "CPU share of the container.",
     [](const auto& item) { return item.account.cpu_shares; }},
    {"container_spec_memory_swap_limit_bytes", "gauge", "Memory swap limit for the container.",
     [](const auto& item) {
       return item.cgroup.path.empty() ? Number() : Number(item.cgroup.usage.swap_limit_bytes.value_or(0));
     }},
    {"container_spec_memory_limit_bytes", "gauge", "Memory limit for the container.",
     [](const auto& item) {  // 0: none
       return item.cgroup.path.empty() ? Number() : Number(item.cgroup.usage.memory_limit_bytes.value_or(0));
     }},
};

// Of containers with a quota: nothing else is ever held back.
constexpr Row kThrottling[] = {
    {"container_cpu_cfs_periods_total", "counter", "Number of elapsed enforcement period intervals.",
     [](const auto& item) { return item.account.periods; }},
    {"container_cpu_cfs_throttled_periods_total", "counter", "Number of throttled period intervals.",
     [](const auto& item) { return item.account.throttled_periods; }},
    {"container_cpu_cfs_throttled_seconds_total", "counter",
     "Total time duration the container has been throttled.",
     [](const auto& item) { return item.account.throttled_nanos; }, 1e9},
};

void AddRow(const StatsSnapshot& stats, const Row& row, MetricsText& text) {
  text.Family(row.name, row.type, row.help);
  EachContainer(stats, [&](const auto& pod, const auto& item, int64_t at) {
    if (const Number value = row.value(item)) {
      text.Add(Labels(pod, item), static_cast<double>(*value) / row.scale, at);
    }
  });
}

void AddThrottling(const StatsSnapshot& stats, MetricsText& text) {
  for (const Row& row : kThrottling) {
    text.Family(row.name, row.type, row.help);
    EachContainer(stats, [&](const auto& pod, const auto& item, int64_t at) {
      const Number value = row.value(item);
      if (value && item.account.cpu_quota_us) {
        text.Add(Labels(pod, item), static_cast<double>(*value) / row.scale, at);
      }
    });
  }
}

void AddPageFaults(const StatsSnapshot& stats, MetricsText& text) {
  text.Family("container_memory_failures_total", "counter",
              "Cumulative count of memory allocation failures.");
  EachContainer(stats, [&](const auto& pod, const auto& item, int64_t at) {
    const linux::CgroupUsage& usage = item.cgroup.usage;
    for (const auto& [type, value] :
         {std::pair("pgfault", usage.page_faults), {"pgmajfault", usage.major_page_faults}}) {
      for (const char* scope : {"container", "hierarchy"}) {  // containers have no cgroups within
        if (value) {
          text.Add(fmt::format("failure_type=\"{}\",scope=\"{}\",{}", type, scope, Labels(pod, item)),
                   static_cast<double>(*value), at);
        }
      }
    }
  });
}

void AddDisks(const StatsSnapshot& stats, MetricsText& text) {
  struct Column {
    const char *name, *help;
    uint64_t linux::DeviceIo::*value;
  };
  for (const Column& column :
       {Column{"container_fs_reads_total", "Cumulative count of reads completed", &linux::DeviceIo::reads},
        {"container_fs_reads_bytes_total", "Cumulative count of bytes read", &linux::DeviceIo::read_bytes},
        {"container_fs_writes_total", "Cumulative count of writes completed", &linux::DeviceIo::writes},
        {"container_fs_writes_bytes_total", "Cumulative count of bytes written",
         &linux::DeviceIo::written_bytes}}) {
    text.Family(column.name, "counter", column.help);
    EachContainer(stats, [&](const auto& pod, const auto& item, int64_t at) {
      for (const linux::DeviceIo& io : item.account.io) {
        text.Add(fmt::format("device=\"{}\",{}", io.device, Labels(pod, item)),
                 static_cast<double>(io.*column.value), at);
      }
    });
  }
}

// What node, pods and containers have in common.
void AddUsage(const StatsSnapshot& stats, MetricsText& text) {
  const int64_t now = Millis(stats.time);
  text.Family("container_cpu_usage_seconds_total", "counter", "Cumulative cpu time consumed in seconds.");
  const std::string total = "cpu=\"total\",";
  text.Add(total + kNodeLabels, Seconds(stats.cpu.core_nanos), now);
  for (const PodUsageStats& pod : stats.pods) {
    if (pod.cpu) text.Add(total + Labels(pod), Seconds(pod.cpu->core_nanos), now);
  }
  EachContainer(stats, [&](const auto& pod, const auto& item, int64_t at) {
    if (item.cpu) text.Add(total + Labels(pod, item), Seconds(item.cpu->core_nanos), at);
  });
  struct Memory {
    const char *name, *help;
    uint64_t MachineStats::*node;
    Number linux::CgroupUsage::*pod;
    Number cri::ContainerStats::*container;
  };
  for (const Memory& memory :
       {Memory{"container_memory_working_set_bytes", "Current working set in bytes.",
               &MachineStats::memory_working_set, &linux::CgroupUsage::memory_working_set_bytes,
               &cri::ContainerStats::memory_working_set_bytes},
        {"container_memory_usage_bytes",
         "Current memory usage in bytes, including all memory regardless of when it was accessed",
         &MachineStats::memory_usage, &linux::CgroupUsage::memory_bytes,
         &cri::ContainerStats::memory_usage_bytes},
        {"container_memory_rss", "Size of RSS in bytes.", &MachineStats::memory_rss,
         &linux::CgroupUsage::memory_rss_bytes, &cri::ContainerStats::memory_rss_bytes}}) {
    text.Family(memory.name, "gauge", memory.help);
    text.Add(kNodeLabels, static_cast<double>(stats.machine.*memory.node), now);
    for (const PodUsageStats& pod : stats.pods) {
      if (const Number& value = pod.cgroup.*memory.pod) {
        text.Add(Labels(pod), static_cast<double>(*value), now);
      }
    }
    EachContainer(stats, [&](const auto& pod, const auto& item, int64_t at) {
      if (const Number& value = item.runtime.*memory.container) {
        text.Add(Labels(pod, item), static_cast<double>(*value), at);
      }
    });
  }
}

// Counters of what was waited for: of the machine, of pods as wholes, of containers.
void AddPressures(const StatsSnapshot& stats, MetricsText& text) {
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
      if (const auto& value = pressure.*row.of) {
        text.Add(labels, static_cast<double>(((*value).*row.kind).total_us) / 1e6, at);
      }
    };
    add(kNodeLabels, stats.pressure, now);
    for (const PodUsageStats& pod : stats.pods) add(Labels(pod), pod.pressure, now);
    EachContainer(stats, [&](const auto& pod, const auto& item, int64_t at) {
      add(Labels(pod, item), item.cgroup.pressure, at);
    });
  }
}

}  // namespace

std::string CadvisorMetricsText(const StatsSnapshot& stats, const MachineFacts& machine) {
  MetricsText text;
  AddUsage(stats, text);
  for (const Row& row : kRows) AddRow(stats, row, text);
  AddThrottling(stats, text);
  AddPageFaults(stats, text);
  AddDisks(stats, text);
  AddFileSystems(stats, text);
  text.Family("container_last_seen", "gauge", "Last time a container was seen by the exporter");
  EachContainer(stats, [&](const auto& pod, const auto& item, int64_t at) {
    const int64_t seconds = at / 1000;
    text.Add(Labels(pod, item), static_cast<double>(seconds), at);
  });
  text.Family("container_start_time_seconds", "gauge",
              "Start time of the container since unix epoch in seconds.");
  EachContainer(stats, [&](const auto& pod, const auto& item, int64_t at) {
    const int64_t seconds = item.created_at / 1000000000;
    text.Add(Labels(pod, item), static_cast<double>(seconds), at);
  });
  AddNetwork(stats, text);
  AddPressures(stats, text);
  AddMachine(stats, machine, text);
  return text.Take();
}

}  // namespace keelson::kubelet
