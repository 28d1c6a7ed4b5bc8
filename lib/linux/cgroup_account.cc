#include <sys/stat.h>

#include <algorithm>
#include <sstream>

#include "lib/base/file.h"
#include "lib/linux/cgroup.h"
#include "lib/linux/cgroup_files.h"

namespace keelson::linux {

std::optional<uint64_t> ReadNumber(const std::string& path) {
  auto text = ReadFile(path);
  if (!text || text->empty() || !isdigit(static_cast<unsigned char>((*text)[0]))) return std::nullopt;
  return std::strtoull(text->c_str(), nullptr, 10);
}

std::map<std::string, uint64_t> ReadTable(const std::string& path) {
  std::map<std::string, uint64_t> out;
  auto text = ReadFile(path);
  if (!text) return out;
  std::istringstream in(*text);
  std::string name;
  uint64_t value = 0;
  while (in >> name >> value) out.emplace(name, value);
  return out;
}

std::optional<uint64_t> Find(const std::map<std::string, uint64_t>& table, const std::string& key) {
  auto it = table.find(key);
  return it == table.end() ? std::nullopt : std::optional<uint64_t>(it->second);
}

namespace {

DeviceIo& Of(const std::string& device, std::vector<DeviceIo>& all) {
  auto known =
      std::find_if(all.begin(), all.end(), [&](const DeviceIo& item) { return item.device == device; });
  return known != all.end() ? *known : all.emplace_back(DeviceIo{device, 0, 0, 0, 0});
}

// v2 has one line per device: "8:0 rbytes=1 wbytes=2 rios=3 wios=4 ...".
std::vector<DeviceIo> ReadIo(const std::string& path) {
  std::vector<DeviceIo> all;
  auto text = ReadFile(path);
  if (!text) return all;
  std::istringstream lines(*text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream in(line);
    std::string device;
    if (!(in >> device) || device.find(':') == std::string::npos) continue;
    DeviceIo& io = Of(device, all);
    for (std::string pair; in >> pair;) {
      const size_t equals = pair.find('=');
      if (equals == std::string::npos) continue;
      const std::string key = pair.substr(0, equals);
      const uint64_t value = std::strtoull(pair.c_str() + equals + 1, nullptr, 10);
      if (key == "rbytes") io.read_bytes = value;
      if (key == "wbytes") io.written_bytes = value;
      if (key == "rios") io.reads = value;
      if (key == "wios") io.writes = value;
    }
  }
  return all;
}

// v1 has one line per device and direction: "8:0 Read 1".
void ReadIoV1(const std::string& path, uint64_t DeviceIo::*reads, uint64_t DeviceIo::*writes,
              std::vector<DeviceIo>& all) {
  auto text = ReadFile(path);
  if (!text) return;
  std::istringstream lines(*text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream in(line);
    std::string device, direction;
    uint64_t value = 0;
    if (!(in >> device >> direction >> value)) continue;  // the last line is a sum
    if (direction == "Read") Of(device, all).*reads = value;
    if (direction == "Write") Of(device, all).*writes = value;
  }
}

// "50000 100000" or "max 100000".
void ReadQuota(const std::string& path, CgroupAccount& out) {
  auto text = ReadFile(path);
  if (!text) return;
  std::istringstream in(*text);
  std::string quota;
  uint64_t period = 0;
  if (!(in >> quota >> period)) return;
  out.cpu_period_us = period;
  if (quota != "max") out.cpu_quota_us = std::strtoull(quota.c_str(), nullptr, 10);
}

std::optional<uint64_t> Times(std::optional<uint64_t> value, uint64_t factor) {
  return value ? std::optional<uint64_t>(*value * factor) : std::nullopt;
}

uint64_t CountLines(const std::string& path) {
  auto text = ReadFile(path);
  return text ? static_cast<uint64_t>(std::count(text->begin(), text->end(), '\n')) : 0;
}

}  // namespace

CgroupAccount Cgroups::Account(const std::string& path) const {
  CgroupAccount out;
  const std::string memory = MemoryDir(path);
  const auto stat = ReadTable(memory + "/memory.stat");
  if (unified()) {
    const auto cpu = ReadTable(memory + "/cpu.stat"), events = ReadTable(memory + "/memory.events");
    out.cpu_user_nanos = Times(Find(cpu, "user_usec"), 1000);
    out.cpu_system_nanos = Times(Find(cpu, "system_usec"), 1000);
    out.periods = Find(cpu, "nr_periods");
    out.throttled_periods = Find(cpu, "nr_throttled");
    out.throttled_nanos = Times(Find(cpu, "throttled_usec"), 1000);
    ReadQuota(memory + "/cpu.max", out);
    if (auto weight = ReadNumber(memory + "/cpu.weight")) out.cpu_shares = SharesOfWeight(*weight);
    out.cache_bytes = Find(stat, "file");
    out.mapped_file_bytes = Find(stat, "file_mapped");
    out.swap_bytes = ReadNumber(memory + "/memory.swap.current");
    out.memory_peak_bytes = ReadNumber(memory + "/memory.peak");
    out.memory_limit_hits = Find(events, "max");
    out.oom_kills = Find(events, "oom_kill");
    out.processes = CountLines(memory + "/cgroup.procs");
    out.io = ReadIo(memory + "/io.stat");
    return out;
  }
  if (const std::string* dir = Controller("cpu")) {
    const auto cpu = ReadTable(*dir + path + "/cpu.stat");
    out.periods = Find(cpu, "nr_periods");
    out.throttled_periods = Find(cpu, "nr_throttled");
    out.throttled_nanos = Find(cpu, "throttled_time");
    out.cpu_quota_us = ReadNumber(*dir + path + "/cpu.cfs_quota_us");  // -1 means no quota and does not parse
    out.cpu_period_us = ReadNumber(*dir + path + "/cpu.cfs_period_us");
    out.cpu_shares = ReadNumber(*dir + path + "/cpu.shares");
  }
  if (const std::string* dir = Controller("cpuacct")) {
    out.cpu_user_nanos = ReadNumber(*dir + path + "/cpuacct.usage_user");
    out.cpu_system_nanos = ReadNumber(*dir + path + "/cpuacct.usage_sys");
  }
  out.cache_bytes = Find(stat, "total_cache");
  out.mapped_file_bytes = Find(stat, "total_mapped_file");
  out.swap_bytes = Find(stat, "total_swap");
  out.memory_peak_bytes = ReadNumber(memory + "/memory.max_usage_in_bytes");
  out.memory_limit_hits = ReadNumber(memory + "/memory.failcnt");
  out.oom_kills = Find(ReadTable(memory + "/memory.oom_control"), "oom_kill");
  out.processes = CountLines(memory + "/cgroup.procs");
  if (const std::string* dir = Controller("blkio")) {
    const std::string throttle = *dir + path + "/blkio.throttle.";
    ReadIoV1(throttle + "io_serviced_recursive", &DeviceIo::reads, &DeviceIo::writes, out.io);
    ReadIoV1(throttle + "io_service_bytes_recursive", &DeviceIo::read_bytes, &DeviceIo::written_bytes,
             out.io);
  }
  return out;
}

}  // namespace keelson::linux
