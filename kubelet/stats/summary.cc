#include "kubelet/stats/summary.h"

#include <algorithm>
#include <boost/json.hpp>

#include "lib/api/meta.h"

namespace keelson::kubelet {

namespace json = boost::json;

namespace {

std::string TimeText(WallTime time) { return api::FormatTime(api::ToTime(time)); }
std::string TimeOfNanos(int64_t nanos) {
  return TimeText(WallTime(std::chrono::duration_cast<WallTime::duration>(std::chrono::nanoseconds(nanos))));
}

json::object StallJson(const linux::Stall& stall) {
  // Upstream's comment says nanoseconds; what it sends are the kernel's microseconds.
  return {
      {"total", stall.total_us}, {"avg10", stall.avg10}, {"avg60", stall.avg60}, {"avg300", stall.avg300}};
}

void AddPressure(const std::optional<linux::Pressure>& pressure, json::object& out) {
  if (pressure) out["psi"] = {{"full", StallJson(pressure->full)}, {"some", StallJson(pressure->some)}};
}

void AddIo(const std::string& time, const linux::CgroupPressure& pressure, json::object& out) {
  if (!pressure.io) return;
  json::object io = {{"time", time}};
  AddPressure(pressure.io, io);
  out["io"] = std::move(io);
}

void AddSwap(const std::string& time, const linux::CgroupUsage& group, json::object& out) {
  if (!group.swap_bytes) return;
  json::object swap = {{"time", time}, {"swapUsageBytes", *group.swap_bytes}};
  if (group.swap_limit_bytes) {
    swap["swapAvailableBytes"] =
        *group.swap_limit_bytes - std::min(*group.swap_limit_bytes, *group.swap_bytes);
  }
  out["swap"] = std::move(swap);
}

json::object Cpu(const CpuUsage& cpu, const std::optional<linux::Pressure>& pressure) {
  json::object out = {{"time", TimeText(cpu.time)}};
  AddPressure(pressure, out);
  if (cpu.nano_cores) out["usageNanoCores"] = *cpu.nano_cores;
  out["usageCoreNanoSeconds"] = cpu.core_nanos;
  return out;
}

// Figures of a container that the runtime does not report.
void AddMemoryDetails(const linux::CgroupUsage& group, const std::optional<linux::Pressure>& pressure,
                      json::object& out) {
  const uint64_t used = group.memory_working_set_bytes.value_or(0);
  if (group.memory_limit_bytes) {
    out["availableBytes"] = *group.memory_limit_bytes - std::min(*group.memory_limit_bytes, used);
  }
  if (group.page_faults) out["pageFaults"] = *group.page_faults;
  if (group.major_page_faults) out["majorPageFaults"] = *group.major_page_faults;
  AddPressure(pressure, out);
}

json::object GroupMemory(const std::string& time, const linux::CgroupUsage& group,
                         const linux::CgroupPressure& pressure) {
  json::object out = {{"time", time}};
  if (group.memory_bytes) out["usageBytes"] = *group.memory_bytes;
  if (group.memory_working_set_bytes) out["workingSetBytes"] = *group.memory_working_set_bytes;
  if (group.memory_rss_bytes) out["rssBytes"] = *group.memory_rss_bytes;
  AddMemoryDetails(group, pressure.memory, out);
  return out;
}

json::object Fs(const std::string& time, const FsUsage& fs) {
  return {{"time", time},
          {"availableBytes", fs.available},
          {"capacityBytes", fs.capacity},
          {"usedBytes", fs.used},
          {"inodesFree", fs.inodes_free},
          {"inodes", fs.inodes},
          {"inodesUsed", fs.inodes_used}};
}

json::object Network(const std::string& time, const std::vector<InterfaceStats>& interfaces) {
  auto one = [](const InterfaceStats& item) {
    return json::object{{"name", item.name},
                        {"rxBytes", item.rx_bytes},
                        {"rxErrors", item.rx_errors},
                        {"txBytes", item.tx_bytes},
                        {"txErrors", item.tx_errors}};
  };
  json::object out;
  if (const InterfaceStats* main = MainInterface(interfaces)) out = one(*main);
  out["time"] = time;
  json::array all;
  for (const InterfaceStats& item : interfaces) all.push_back(one(item));
  out["interfaces"] = std::move(all);
  return out;
}

json::object Container(const ContainerUsageStats& item, const StatsSnapshot& stats, bool brief) {
  const std::string time = TimeOfNanos(item.runtime.timestamp);
  json::object memory = {{"time", time}};
  if (item.runtime.memory_usage_bytes) memory["usageBytes"] = *item.runtime.memory_usage_bytes;
  if (item.runtime.memory_working_set_bytes) {
    memory["workingSetBytes"] = *item.runtime.memory_working_set_bytes;
  }
  if (item.runtime.memory_rss_bytes) memory["rssBytes"] = *item.runtime.memory_rss_bytes;
  AddMemoryDetails(item.cgroup.usage, item.cgroup.pressure.memory, memory);
  json::object out = {{"name", item.runtime.name}, {"startTime", TimeOfNanos(item.created_at)}};
  if (item.cpu) out["cpu"] = Cpu(*item.cpu, item.cgroup.pressure.cpu);
  out["memory"] = std::move(memory);
  AddIo(time, item.cgroup.pressure, out);
  AddSwap(time, item.cgroup.usage, out);
  if (brief) return out;
  FsUsage rootfs = stats.container_fs, logs = stats.node_fs;
  rootfs.used = item.runtime.writable_layer_bytes.value_or(0);
  rootfs.inodes_used = 0;
  logs.used = item.log_bytes;
  logs.inodes_used = item.log_inodes;
  out["rootfs"] = Fs(time, rootfs);
  out["logs"] = Fs(time, logs);
  return out;
}

json::object Pod(const PodUsageStats& item, const StatsSnapshot& stats, bool brief) {
  const metav1::ObjectMeta& meta = item.pod->metadata();
  const std::string now = TimeText(stats.time);
  json::object out = {
      {"podRef", {{"name", meta.name()}, {"namespace", meta.namespace_()}, {"uid", meta.uid()}}},
      {"startTime", api::FormatTime(item.pod->status().start_time())}};
  json::array containers;
  FsUsage ephemeral = stats.node_fs;
  ephemeral.used = ephemeral.inodes_used = 0;
  for (const ContainerUsageStats& container : item.containers) {
    containers.push_back(Container(container, stats, brief));
    ephemeral.used += container.log_bytes + container.runtime.writable_layer_bytes.value_or(0);
    ephemeral.inodes_used += container.log_inodes;
  }
  out["containers"] = std::move(containers);
  if (item.cpu) out["cpu"] = Cpu(*item.cpu, item.pressure.cpu);
  if (item.cgroup.memory_bytes) out["memory"] = GroupMemory(now, item.cgroup, item.pressure);
  AddIo(now, item.pressure, out);
  AddSwap(now, item.cgroup, out);
  if (brief) return out;
  if (!item.interfaces.empty()) out["network"] = Network(now, item.interfaces);
  json::array volumes;
  for (const VolumeUsage& volume : item.volumes) {
    json::object one = Fs(now, volume.fs);
    one["name"] = volume.name;
    if (!volume.claim.empty()) {
      one["pvcRef"] = {{"name", volume.claim}, {"namespace", meta.namespace_()}};
    } else {
      ephemeral.used += volume.fs.used;
      ephemeral.inodes_used += volume.fs.inodes_used;
    }
    volumes.push_back(std::move(one));
  }
  if (!volumes.empty()) out["volume"] = std::move(volumes);
  out["ephemeral-storage"] = Fs(now, ephemeral);
  if (item.cgroup.processes) out["process_stats"] = {{"process_count", *item.cgroup.processes}};
  return out;
}

json::object Node(const StatsSnapshot& stats, const std::string& node_name, bool brief) {
  const std::string now = TimeText(stats.time);
  const MachineStats& machine = stats.machine;
  const uint64_t available = machine.memory_total > machine.memory_working_set
                                 ? machine.memory_total - machine.memory_working_set
                                 : 0;
  json::object out = {{"nodeName", node_name},
                      {"startTime", TimeText(WallTime(std::chrono::seconds(machine.boot_time)))},
                      {"cpu", Cpu(stats.cpu, stats.pressure.cpu)}};
  json::object memory = {{"time", now},
                         {"availableBytes", available},
                         {"usageBytes", machine.memory_usage},
                         {"workingSetBytes", machine.memory_working_set},
                         {"rssBytes", machine.memory_rss},
                         {"pageFaults", machine.page_faults},
                         {"majorPageFaults", machine.major_page_faults}};
  AddPressure(stats.pressure.memory, memory);
  out["memory"] = std::move(memory);
  AddIo(now, stats.pressure, out);
  json::array system;
  if (stats.pods_cpu) {
    system.push_back(json::object{{"name", "pods"},
                                  {"startTime", now},
                                  {"cpu", Cpu(*stats.pods_cpu, stats.pods_pressure.cpu)},
                                  {"memory", GroupMemory(now, stats.pods_cgroup, stats.pods_pressure)}});
  }
  out["systemContainers"] = std::move(system);
  if (brief) return out;
  out["network"] = Network(now, stats.interfaces);
  out["fs"] = Fs(now, stats.node_fs);
  out["runtime"] = {{"imageFs", Fs(now, stats.image_fs)}, {"containerFs", Fs(now, stats.container_fs)}};
  out["rlimit"] = {{"time", now}, {"maxpid", stats.max_pids}, {"curproc", stats.processes}};
  out["swap"] = {{"time", now},
                 {"swapAvailableBytes", machine.swap_free},
                 {"swapUsageBytes", machine.swap_total - machine.swap_free}};
  return out;
}

}  // namespace

std::string SummaryJson(const StatsSnapshot& stats, const std::string& node_name, bool cpu_and_memory_only) {
  json::array pods;
  for (const PodUsageStats& pod : stats.pods) pods.push_back(Pod(pod, stats, cpu_and_memory_only));
  return json::serialize(
      json::object{{"node", Node(stats, node_name, cpu_and_memory_only)}, {"pods", std::move(pods)}});
}

}  // namespace keelson::kubelet
