// Statistics of the machine and of processes, from /proc.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kubelet/stats/fs_usage.h"

namespace keelson::kubelet {

struct MachineStats {
  int64_t boot_time = 0;  // seconds since the epoch
  uint64_t cpu_nanos = 0;
  uint64_t memory_total = 0, memory_usage = 0, memory_working_set = 0, memory_rss = 0;
  uint64_t page_faults = 0, major_page_faults = 0;
  uint64_t swap_total = 0, swap_free = 0;
};
MachineStats ReadMachineStats(const std::string& proc = "/proc");

struct InterfaceStats {
  std::string name;
  uint64_t rx_bytes = 0, rx_errors = 0, tx_bytes = 0, tx_errors = 0;
  uint64_t rx_packets = 0, rx_dropped = 0, tx_packets = 0, tx_dropped = 0;
};
// Of the network namespace of a process ("self", "1234"), without lo.
std::vector<InterfaceStats> ReadInterfaces(const std::string& process, const std::string& proc = "/proc");
struct DiskUsage {
  std::string device;  // /dev/sda1
  FsUsage fs;
};
// File systems on block devices, each one once.
std::vector<DiskUsage> ReadDisks(const std::string& mountinfo = "/proc/self/mountinfo");
// "8:0" -> "/dev/sda"; the numbers if the device is unknown.
std::string DeviceName(const std::string& numbers, const std::string& sys = "/sys");
// The default interface: eth0, or the first that is not a pod's veth. Null: none.
const InterfaceStats* MainInterface(const std::vector<InterfaceStats>& interfaces);

}  // namespace keelson::kubelet
