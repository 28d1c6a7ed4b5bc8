// The part of /metrics/cadvisor that is the machine's: what it is, its networks and file systems.
#include "kubelet/stats/cadvisor_parts.h"

namespace keelson::kubelet {

namespace {

// Of the series of pods' and the machine's networks alike.
struct Column {
  const char *name, *help;
  uint64_t InterfaceStats::*value;
};
constexpr Column kNetwork[] = {
    {"container_network_receive_bytes_total", "Cumulative count of bytes received",
     &InterfaceStats::rx_bytes},
    {"container_network_receive_errors_total", "Cumulative count of errors encountered while receiving",
     &InterfaceStats::rx_errors},
    {"container_network_receive_packets_dropped_total", "Cumulative count of packets dropped while receiving",
     &InterfaceStats::rx_dropped},
    {"container_network_receive_packets_total", "Cumulative count of packets received",
     &InterfaceStats::rx_packets},
    {"container_network_transmit_bytes_total", "Cumulative count of bytes transmitted",
     &InterfaceStats::tx_bytes},
    {"container_network_transmit_errors_total", "Cumulative count of errors encountered while transmitting",
     &InterfaceStats::tx_errors},
    {"container_network_transmit_packets_dropped_total",
     "Cumulative count of packets dropped while transmitting", &InterfaceStats::tx_dropped},
    {"container_network_transmit_packets_total", "Cumulative count of packets transmitted",
     &InterfaceStats::tx_packets},
};

// The other ends of pods' devices would be counted twice.
bool IsOwn(const std::string& interface) {
  for (const char* prefix : {"lo", "veth", "docker", "nerdctl"}) {
    if (interface.starts_with(prefix)) return false;
  }
  return true;
}

std::string Labels(const PodUsageStats& pod, const std::string& interface) {
  return fmt::format("container=\"\",id=\"{}\",image=\"{}\",interface=\"{}\",name=\"{}\",{}",
                     pod.sandbox_path.empty() ? pod.cgroup_path : pod.sandbox_path, pod.sandbox_image,
                     interface, pod.sandbox_id, PodLabels(pod));
}

}  // namespace

void AddNetwork(const StatsSnapshot& stats, MetricsText& text) {
  const int64_t now = Millis(stats.time);
  for (const Column& column : kNetwork) {
    text.Family(column.name, "counter", column.help);
    for (const InterfaceStats& item : stats.interfaces) {
      if (IsOwn(item.name)) {
        text.Add(fmt::format("container=\"\",id=\"/\",image=\"\",interface=\"{}\",name=\"\",namespace=\"\","
                             "pod=\"\"",
                             item.name),
                 static_cast<double>(item.*column.value), now);
      }
    }
    for (const PodUsageStats& pod : stats.pods) {
      for (const InterfaceStats& item : pod.interfaces) {
        text.Add(Labels(pod, item.name), static_cast<double>(item.*column.value), now);
      }
    }
  }
}

void AddFileSystems(const StatsSnapshot& stats, MetricsText& text) {
  struct Row {
    const char *name, *help;
    uint64_t FsUsage::*value;
  };
  static constexpr Row kRows[] = {
      {"container_fs_inodes_free", "Number of available Inodes", &FsUsage::inodes_free},
      {"container_fs_inodes_total", "Number of Inodes", &FsUsage::inodes},
      {"container_fs_limit_bytes",
       "Number of bytes that can be consumed by the container on this filesystem.", &FsUsage::capacity},
      {"container_fs_usage_bytes", "Number of bytes that are consumed by the container on this filesystem.",
       &FsUsage::used}};
  const int64_t now = Millis(stats.time);
  for (const Row& row : kRows) {
    text.Family(row.name, "gauge", row.help);
    for (const DiskUsage& disk : stats.disks) {
      text.Add(fmt::format("device=\"{}\",{}", disk.device, kNodeLabels),
               static_cast<double>(disk.fs.*row.value), now);
    }
    if (row.value != &FsUsage::used) continue;
    EachContainer(stats, [&](const auto& pod, const auto& item, int64_t at) {
      if (const auto& bytes = item.runtime.writable_layer_bytes) {
        text.Add("device=\"\"," + Labels(pod, item), static_cast<double>(*bytes), at);
      }
    });
  }
}

void AddMachine(const StatsSnapshot& stats, const MachineFacts& facts, MetricsText& text) {
  text.Family("cadvisor_version_info", "gauge",
              "A metric with a constant '1' value labeled by kernel version, OS version, docker version, "
              "cadvisor version & cadvisor revision.");
  text.Add(fmt::format("cadvisorRevision=\"\",cadvisorVersion=\"\",dockerVersion=\"\",kernelVersion=\"{}\","
                       "osVersion=\"{}\"",
                       facts.kernel_version, facts.os_image),
           1);
  const std::string labels = fmt::format("boot_id=\"{}\",machine_id=\"{}\",system_uuid=\"{}\"", facts.boot_id,
                                         facts.machine_id, facts.system_uuid);
  auto add = [&](const char* name, const char* help, double value) {
    text.Family(name, "gauge", help);
    text.Add(labels, value);
  };
  add("machine_cpu_cores", "Number of logical CPU cores.", facts.cpus);
  add("machine_cpu_physical_cores", "Number of physical CPU cores.", facts.cores);
  add("machine_cpu_sockets", "Number of CPU sockets.", facts.sockets);
  add("machine_memory_bytes", "Amount of memory installed on the machine.",
      static_cast<double>(stats.machine.memory_total));
  add("machine_swap_bytes", "Amount of swap memory available on the machine.",
      static_cast<double>(stats.machine.swap_total));
  text.Family("machine_scrape_error", "gauge",
              "1 if there was an error while getting machine metrics, 0 otherwise.");
  text.Add("", 0);
  text.Family("container_scrape_error", "gauge",
              "1 if there was an error while getting container metrics, 0 otherwise");
  text.Add("", 0);
}

}  // namespace keelson::kubelet
