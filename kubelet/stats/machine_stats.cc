#include "kubelet/stats/machine_stats.h"

#include <unistd.h>

#include <filesystem>
#include <map>
#include <set>
#include <sstream>

#include "lib/base/file.h"
#include "lib/linux/mount.h"

namespace keelson::kubelet {

namespace {

// Lines of "name: value unit" or "name value".
std::map<std::string, uint64_t> ReadTable(const std::string& path) {
  std::map<std::string, uint64_t> out;
  auto text = ReadFile(path);
  if (!text) return out;
  std::istringstream lines(*text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream in(line);
    std::string name;
    uint64_t value = 0;
    if (!(in >> name >> value)) continue;
    if (name.back() == ':') name.pop_back();
    out[name] = value;
  }
  return out;
}

void ReadCpu(const std::string& path, MachineStats& out) {
  auto text = ReadFile(path);
  if (!text) return;
  const auto tick = static_cast<uint64_t>(1000000000 / ::sysconf(_SC_CLK_TCK));
  std::istringstream lines(*text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream in(line);
    std::string name;
    in >> name;
    if (name == "btime") in >> out.boot_time;
    if (name != "cpu") continue;
    uint64_t user = 0, nice = 0, system = 0, idle = 0, wait = 0, irq = 0, softirq = 0, steal = 0;
    in >> user >> nice >> system >> idle >> wait >> irq >> softirq >> steal;
    out.cpu_nanos = (user + nice + system + irq + softirq + steal) * tick;
  }
}

}  // namespace

MachineStats ReadMachineStats(const std::string& proc) {
  MachineStats out;
  ReadCpu(proc + "/stat", out);
  auto memory = ReadTable(proc + "/meminfo");
  auto bytes = [&memory](const char* name) { return memory[name] * 1024; };
  out.memory_total = bytes("MemTotal");
  out.memory_usage = out.memory_total - bytes("MemFree");
  const uint64_t inactive = bytes("Inactive(file)");
  out.memory_working_set = out.memory_usage > inactive ? out.memory_usage - inactive : 0;
  out.memory_rss = bytes("AnonPages");
  out.swap_total = bytes("SwapTotal");
  out.swap_free = bytes("SwapFree");
  auto events = ReadTable(proc + "/vmstat");
  out.page_faults = events["pgfault"];
  out.major_page_faults = events["pgmajfault"];
  return out;
}

std::vector<InterfaceStats> ReadInterfaces(const std::string& process, const std::string& proc) {
  std::vector<InterfaceStats> out;
  auto text = ReadFile(proc + "/" + process + "/net/dev");
  if (!text) return out;
  std::istringstream lines(*text);
  for (std::string line; std::getline(lines, line);) {
    const size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    InterfaceStats item;
    std::istringstream(line.substr(0, colon)) >> item.name;
    if (item.name == "lo") continue;
    uint64_t skipped = 0;
    std::istringstream in(line.substr(colon + 1));
    in >> item.rx_bytes >> item.rx_packets >> item.rx_errors >> item.rx_dropped >> skipped >> skipped >>
        skipped >> skipped >> item.tx_bytes >> item.tx_packets >> item.tx_errors >> item.tx_dropped;
    out.push_back(std::move(item));
  }
  return out;
}

std::vector<DiskUsage> ReadDisks(const std::string& mountinfo) {
  std::vector<DiskUsage> out;
  auto mounts = linux::ListMounts(mountinfo);
  if (!mounts) return out;
  std::set<std::string> seen;
  for (const linux::MountInfo& mount : *mounts) {
    const bool on_disk =
        mount.fs_type.starts_with("ext") || mount.fs_type == "xfs" || mount.fs_type == "btrfs";
    if (!on_disk || !mount.source.starts_with("/dev/") || !seen.insert(mount.source).second) continue;
    const FsUsage fs = FileSystemOf(mount.mount_point);
    if (fs.capacity > 0) out.push_back({mount.source, fs});
  }
  return out;
}

std::string DeviceName(const std::string& numbers, const std::string& sys) {
  std::error_code failed;
  const auto link = std::filesystem::read_symlink(sys + "/dev/block/" + numbers, failed);
  return failed ? numbers : "/dev/" + link.filename().string();
}

const InterfaceStats* MainInterface(const std::vector<InterfaceStats>& interfaces) {
  for (const InterfaceStats& item : interfaces) {
    if (item.name == "eth0") return &item;
  }
  for (const InterfaceStats& item : interfaces) {
    if (item.name.compare(0, 4, "veth") != 0 && item.name.compare(0, 3, "cni") != 0) return &item;
  }
  return interfaces.empty() ? nullptr : &interfaces.front();
}

}  // namespace keelson::kubelet
