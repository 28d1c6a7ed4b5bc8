// Control groups through plain files (the cgroupfs driver), with one interface for v1, v1-hybrid and v2.
//
//   /sys/fs/cgroup/memory/kubepods/burstable/pod1   v1: one directory per controller hierarchy
//   /sys/fs/cgroup/kubepods/burstable/pod1          v2: one directory
//
// A cgroup is named by its path below the hierarchy's root: "/kubepods/burstable/pod1". Thread safe. Errors
// carry the path and errno.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/error.h"
#include "lib/linux/pressure.h"

namespace keelson::linux {

// A field that is nullopt, or a size that is not in the map, stays as it is. -1 in cpu_quota_us,
// memory_limit_bytes and pids_max means no limit.
struct CgroupLimits {
  std::optional<uint64_t> cpu_shares;  // v1 scale: 2 to 262144; v2 gets the corresponding weight
  std::optional<int64_t> cpu_quota_us;
  uint64_t cpu_period_us = 100000;
  std::optional<int64_t> memory_limit_bytes;
  // Memory protected from reclaim: always (min), and while others have some left (low). v2 only.
  std::optional<int64_t> memory_min_bytes, memory_low_bytes;
  std::optional<int64_t> pids_max;
  std::map<std::string, int64_t> huge_pages;  // size as the kernel spells it ("2MB") -> bytes
  bool operator==(const CgroupLimits&) const = default;
};

// nullopt: the kernel does not say.
struct CgroupUsage {
  std::optional<uint64_t> cpu_nanos;
  std::optional<uint64_t> memory_bytes, memory_working_set_bytes;  // working set: without inactive file pages
  std::optional<uint64_t> memory_limit_bytes;                      // no limit: no number
  std::optional<uint64_t> memory_rss_bytes, page_faults, major_page_faults;
  std::optional<uint64_t> swap_bytes, swap_limit_bytes;  // v2 only; no limit: no number
  std::optional<uint64_t> processes;
};

// Time that the cgroup's processes have waited for each resource. v2 only.
struct CgroupPressure {
  std::optional<Pressure> cpu, memory, io;
};

struct DeviceIo {
  std::string device;  // "8:0"
  uint64_t reads = 0, writes = 0, read_bytes = 0, written_bytes = 0;
  bool operator==(const DeviceIo&) const = default;
};

// Details for diagnosis. Takes more file reads than CgroupUsage.
struct CgroupAccount {
  std::optional<uint64_t> cpu_user_nanos, cpu_system_nanos;
  std::optional<uint64_t> periods, throttled_periods, throttled_nanos;
  // Shares are on v1's scale. Without a limit there is no quota.
  std::optional<uint64_t> cpu_shares, cpu_quota_us, cpu_period_us;
  std::optional<uint64_t> cache_bytes, mapped_file_bytes, swap_bytes, memory_peak_bytes;
  std::optional<uint64_t> memory_limit_hits, oom_kills;
  std::optional<uint64_t> processes;  // of the cgroup itself
  std::vector<DeviceIo> io;
};

class Cgroups {
 public:
  // Finds the hierarchies in a mountinfo file. kNotFound when there is no cgroup mount with controllers.
  static Result<Cgroups> Detect(const std::string& mountinfo = "/proc/self/mountinfo");
  // For tests: either `unified` is the v2 mount with controllers, or `controllers` maps each v1 controller
  // to its mount.
  Cgroups(std::string unified, std::map<std::string, std::string> controllers);

  bool unified() const { return !unified_.empty(); }
  // Whether the kernel can limit swap per cgroup.
  bool LimitsSwap() const;
  // Makes the cgroup and its parents (existing ones stay) and applies the limits.
  Result<> Create(const std::string& path, const CgroupLimits& limits) const;
  // Applies the limits to an existing cgroup.
  Result<> Update(const std::string& path, const CgroupLimits& limits) const;
  // Removes the cgroup and everything below it from every hierarchy, also from those that others filled. An
  // absent cgroup is fine. kUnavailable (EBUSY) while a process is inside.
  Result<> Remove(const std::string& path) const;
  bool Exists(const std::string& path) const;
  // The cgroup's directories that do not exist, out of one per controller that pods need.
  std::vector<std::string> Missing(const std::string& path) const;
  std::vector<std::string> Children(const std::string& path) const;  // sorted names
  std::vector<pid_t> Processes(const std::string& path) const;       // of the whole subtree
  // Usage, Pressures and Account leave fields empty that cannot be read; an absent cgroup gives empty ones.
  CgroupUsage Usage(const std::string& path) const;
  CgroupPressure Pressures(const std::string& path) const;
  CgroupAccount Account(const std::string& path) const;
  // The first cgroup below `path` with `part` in its name; empty: none.
  std::string ChildWith(const std::string& path, const std::string& part) const;
  // The directory with the cgroup's memory files: on v1 in the memory hierarchy.
  std::string MemoryDir(const std::string& path) const;

  // v1 shares as a v2 weight, with the mapping that runc and crun use: 2 -> 1, 1024 -> 39, 262144 -> 10000.
  static uint64_t WeightOfShares(uint64_t shares);
  static uint64_t SharesOfWeight(uint64_t weight);  // the inverse, as near as rounding allows

 private:
  const std::string* Controller(const std::string& name) const;
  Result<> Apply(const std::string& path, const CgroupLimits& limits) const;
  Result<> ApplyV1(const std::string& path, const CgroupLimits& limits) const;
  Result<> ApplyV2(const std::string& path, const CgroupLimits& limits) const;

  std::string unified_;                             // v2 mount point, empty on v1
  std::map<std::string, std::string> controllers_;  // v1: controller -> mount point
  std::vector<std::string> all_mounts_;  // every hierarchy, also named ones and those without controllers
};

}  // namespace keelson::linux
