#include "lib/linux/cgroup.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <set>
#include <sstream>

#include "lib/base/file.h"
#include "lib/base/text.h"
#include "lib/linux/cgroup_files.h"
#include "lib/linux/mount.h"

namespace keelson::linux {

namespace {

// The controllers that Cgroups sets on v1; the runtime makes the directories of the others itself.
constexpr const char* kUsedControllers[] = {"cpu", "cpuacct", "cpuset", "memory", "pids", "hugetlb"};

// The largest number of whole pages, whatever their size.
constexpr uint64_t kNoLimitOnV1 = uint64_t{1} << 62;

// Kernels without the controller have no such files.
Result<> LimitHugePages(const std::string& dir, const char* file, const CgroupLimits& limits) {
  for (const auto& [size, bytes] : limits.huge_pages) {
    if (std::string path = dir + "/hugetlb." + size + file; PathExists(path)) {
      KEELSON_RETURN_IF_ERROR(WriteFile(path, std::to_string(bytes)));
    }
  }
  return {};
}

// A new cpuset is empty and takes no process until it has cpus and mems.
Result<> InheritCpuset(const std::string& root, const std::string& path) {
  for (const char* file : {"cpuset.cpus", "cpuset.mems"}) {
    std::string dir = root;
    auto value = ReadFile(dir + "/" + file);
    for (std::string_view part : SplitWords(path, "/")) {
      (dir += '/') += part;
      auto own = ReadFile(dir + "/" + file);
      if (own && Trim(*own).empty() && value) {
        KEELSON_RETURN_IF_ERROR(WriteFile(dir + "/" + file, std::string(Trim(*value))));
      } else if (own) {
        value = own;
      }
    }
  }
  return {};
}

// Children of a v2 cgroup have a controller only if every parent passes it on.
void EnableControllers(const std::string& root, const std::string& path) {
  auto available = ReadFile(root + "/cgroup.controllers");
  if (!available) return;
  std::string dir = root;
  const std::vector<std::string_view> parts = SplitWords(path, "/");
  for (size_t i = 0; i <= parts.size(); ++i) {
    for (std::string_view name : SplitWords(*available)) {
      (void)WriteFile(dir + "/cgroup.subtree_control",
                      "+" + std::string(name));  // some cannot be: rt processes, threads
    }
    if (i < parts.size()) (dir += '/') += parts[i];
    if (i + 1 >= parts.size()) break;  // the last one is for processes or for the runtime to split further
  }
}

Result<> RemoveDir(const std::string& dir) {
  auto names = ListDir(dir);
  if (!names) return names.error().Is(Code::kNotFound) ? Result<>() : Result<>(names.error());
  for (const std::string& name : *names) {
    struct stat info = {};
    if (::lstat((dir + "/" + name).c_str(), &info) == 0 && S_ISDIR(info.st_mode)) {
      KEELSON_RETURN_IF_ERROR(RemoveDir(dir + "/" + name));
    }
  }
  if (::rmdir(dir.c_str()) != 0 && errno != ENOENT) return ErrnoError("remove cgroup " + dir);
  return {};
}

void CollectProcesses(const std::string& dir, std::set<pid_t>& pids) {
  if (auto text = ReadFile(dir + "/cgroup.procs")) {
    std::istringstream in(*text);
    for (pid_t pid = 0; in >> pid;) pids.insert(pid);
  }
  auto names = ListDir(dir);
  if (!names) return;
  for (const std::string& name : *names) {
    struct stat info = {};
    std::string child = dir + "/" + name;
    if (::lstat(child.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) CollectProcesses(child, pids);
  }
}

}  // namespace

Cgroups::Cgroups(std::string unified, std::map<std::string, std::string> controllers)
    : unified_(std::move(unified)), controllers_(std::move(controllers)) {
  std::set<std::string> mounts;
  if (!unified_.empty()) mounts.insert(unified_);
  for (const auto& [name, mount] : controllers_) mounts.insert(mount);
  all_mounts_.assign(mounts.begin(), mounts.end());
}

Result<Cgroups> Cgroups::Detect(const std::string& mountinfo) {
  KEELSON_ASSIGN_OR_RETURN(auto mounts, ListMounts(mountinfo));
  static const std::set<std::string> kKnown = {"cpu",      "cpuacct", "cpuset",     "memory",  "pids",
                                               "blkio",    "devices", "freezer",    "hugetlb", "net_cls",
                                               "net_prio", "misc",    "perf_event", "rdma"};
  std::string v2;
  std::map<std::string, std::string> controllers;
  std::set<std::string> all;
  for (const MountInfo& mount : mounts) {
    if (mount.fs_type == "cgroup2") {
      if (v2.empty()) v2 = mount.mount_point;
      all.insert(mount.mount_point);
    } else if (mount.fs_type == "cgroup") {
      all.insert(mount.mount_point);
      for (std::string_view word : SplitWords(mount.super_options, ",")) {
        if (const std::string option(word); kKnown.count(option)) {
          controllers.emplace(option, mount.mount_point);
        }
      }
    }
  }
  // On a hybrid system the v2 mount exists but has no controllers: use v1.
  bool use_v2 = !v2.empty() && !controllers.count("memory");
  if (!use_v2 && !controllers.count("memory")) {
    return Error(Code::kNotFound, "no cgroup file system with a memory controller is mounted");
  }
  Cgroups found(use_v2 ? v2 : "", use_v2 ? std::map<std::string, std::string>{} : controllers);
  found.all_mounts_.assign(all.begin(), all.end());
  return found;
}

const std::string* Cgroups::Controller(const std::string& name) const {
  auto it = controllers_.find(name);
  return it == controllers_.end() ? nullptr : &it->second;
}

Result<> Cgroups::Create(const std::string& path, const CgroupLimits& limits) const {
  if (unified()) {
    KEELSON_RETURN_IF_ERROR(MakeDirs(unified_ + path));
    EnableControllers(unified_, path);
  } else {
    for (const char* name : kUsedControllers) {
      const std::string* root = Controller(name);
      if (!root) continue;
      KEELSON_RETURN_IF_ERROR(MakeDirs(*root + path));
      if (std::string_view(name) == "cpuset") KEELSON_RETURN_IF_ERROR(InheritCpuset(*root, path));
    }
  }
  return Apply(path, limits);
}

Result<> Cgroups::Update(const std::string& path, const CgroupLimits& limits) const {
  return Apply(path, limits);
}

Result<> Cgroups::Apply(const std::string& path, const CgroupLimits& limits) const {
  return unified() ? ApplyV2(path, limits) : ApplyV1(path, limits);
}

Result<> Cgroups::ApplyV1(const std::string& path, const CgroupLimits& limits) const {
  if (const std::string* cpu = Controller("cpu")) {
    if (limits.cpu_shares) {
      KEELSON_RETURN_IF_ERROR(WriteFile(*cpu + path + "/cpu.shares", std::to_string(*limits.cpu_shares)));
    }
    if (limits.cpu_quota_us && PathExists(*cpu + path + "/cpu.cfs_quota_us")) {
      KEELSON_RETURN_IF_ERROR(
          WriteFile(*cpu + path + "/cpu.cfs_period_us", std::to_string(limits.cpu_period_us)));
      KEELSON_RETURN_IF_ERROR(
          WriteFile(*cpu + path + "/cpu.cfs_quota_us", std::to_string(*limits.cpu_quota_us)));
    }
  }
  if (const std::string* memory = Controller("memory"); memory && limits.memory_limit_bytes) {
    KEELSON_RETURN_IF_ERROR(
        WriteFile(*memory + path + "/memory.limit_in_bytes", std::to_string(*limits.memory_limit_bytes)));
  }
  if (const std::string* pids = Controller("pids"); pids && limits.pids_max) {
    KEELSON_RETURN_IF_ERROR(WriteFile(*pids + path + "/pids.max", *limits.pids_max < 0
                                                                      ? std::string("max")
                                                                      : std::to_string(*limits.pids_max)));
  }
  const std::string* huge_pages = Controller("hugetlb");
  return huge_pages ? LimitHugePages(*huge_pages + path, ".limit_in_bytes", limits) : Result<>();
}

Result<> Cgroups::ApplyV2(const std::string& path, const CgroupLimits& limits) const {
  std::string dir = unified_ + path;
  auto number_or_max = [](int64_t value) { return value < 0 ? std::string("max") : std::to_string(value); };
  if (limits.cpu_shares) {
    KEELSON_RETURN_IF_ERROR(
        WriteFile(dir + "/cpu.weight", std::to_string(WeightOfShares(*limits.cpu_shares))));
  }
  if (limits.cpu_quota_us) {
    KEELSON_RETURN_IF_ERROR(WriteFile(
        dir + "/cpu.max", number_or_max(*limits.cpu_quota_us) + " " + std::to_string(limits.cpu_period_us)));
  }
  if (limits.memory_limit_bytes) {
    KEELSON_RETURN_IF_ERROR(WriteFile(dir + "/memory.max", number_or_max(*limits.memory_limit_bytes)));
  }
  if (limits.memory_min_bytes) {
    KEELSON_RETURN_IF_ERROR(WriteFile(dir + "/memory.min", std::to_string(*limits.memory_min_bytes)));
  }
  if (limits.memory_low_bytes) {
    KEELSON_RETURN_IF_ERROR(WriteFile(dir + "/memory.low", std::to_string(*limits.memory_low_bytes)));
  }
  if (limits.pids_max) KEELSON_RETURN_IF_ERROR(WriteFile(dir + "/pids.max", number_or_max(*limits.pids_max)));
  return LimitHugePages(dir, ".max", limits);
}

Result<> Cgroups::Remove(const std::string& path) const {
  Result<> first;
  for (const std::string& mount : all_mounts_) {
    if (auto removed = RemoveDir(mount + path); !removed && first) first = removed;
  }
  return first;
}

bool Cgroups::Exists(const std::string& path) const {
  if (unified()) return PathExists(unified_ + path);
  const std::string* memory = Controller("memory");
  return memory && PathExists(*memory + path);
}

std::vector<std::string> Cgroups::Missing(const std::string& path) const {
  std::set<std::string> directories;  // controllers may share a hierarchy
  if (unified()) directories.insert(unified_ + path);
  for (const char* name : kUsedControllers) {
    if (const std::string* root = Controller(name)) directories.insert(*root + path);
  }
  std::vector<std::string> out;
  for (const std::string& directory : directories) {
    if (!PathExists(directory)) out.push_back(directory);
  }
  return out;
}

std::vector<std::string> Cgroups::Children(const std::string& path) const {
  std::set<std::string> children;
  for (const std::string& mount : all_mounts_) {
    DIR* dir = ::opendir((mount + path).c_str());
    if (!dir) continue;
    while (const dirent* entry = ::readdir(dir)) {  // kernfs fills in d_type
      if (entry->d_type == DT_DIR && entry->d_name[0] != '.') children.insert(entry->d_name);
    }
    ::closedir(dir);
  }
  return {children.begin(), children.end()};
}

std::vector<pid_t> Cgroups::Processes(const std::string& path) const {
  std::set<pid_t> pids;
  for (const std::string& mount : all_mounts_) CollectProcesses(mount + path, pids);
  return {pids.begin(), pids.end()};
}

std::string Cgroups::MemoryDir(const std::string& path) const {
  const std::string* memory = Controller("memory");
  return unified() ? unified_ + path : memory ? *memory + path : "";
}

bool Cgroups::LimitsSwap() const {
  const std::string root = MemoryDir("");
  if (!unified()) return PathExists(root + "/memory.memsw.limit_in_bytes");
  auto names = ListDir(root);  // the root itself has no limits
  if (!names) return false;
  bool limited = false;
  for (const std::string& name : *names) {
    if (PathExists(root + "/" + name + "/memory.swap.max")) return true;
    limited = limited || PathExists(root + "/" + name + "/memory.max");
  }
  return !limited && PathExists("/proc/swaps");  // no cgroup to look at yet: a kernel with swap can limit it
}

std::string Cgroups::ChildWith(const std::string& path, const std::string& part) const {
  auto names = ListDir(MemoryDir(path));
  if (!names) return "";
  for (const std::string& name : *names) {
    // crio-conmon-ID.scope is beside crio-ID.scope.
    const bool monitor = name.find("conmon") != std::string::npos;
    if (!monitor && name.find(part) != std::string::npos) return path + "/" + name;
  }
  return "";
}

CgroupUsage Cgroups::Usage(const std::string& path) const {
  CgroupUsage usage;
  const std::string memory = MemoryDir(path);
  const auto stat = ReadTable(memory + "/memory.stat");
  const std::string all = unified() ? "" : "total_";  // v1 counts the cgroup alone; total_ includes all below
  if (unified()) {
    if (auto micros = Find(ReadTable(memory + "/cpu.stat"), "usage_usec")) usage.cpu_nanos = *micros * 1000;
    usage.memory_bytes = ReadNumber(memory + "/memory.current");
    usage.memory_limit_bytes = ReadNumber(memory + "/memory.max");
    usage.memory_rss_bytes = Find(stat, "anon");
    usage.swap_bytes = ReadNumber(memory + "/memory.swap.current");
    usage.swap_limit_bytes = ReadNumber(memory + "/memory.swap.max");
    usage.processes = ReadNumber(memory + "/pids.current");
  } else {
    if (const std::string* cpu = Controller("cpuacct")) {
      usage.cpu_nanos = ReadNumber(*cpu + path + "/cpuacct.usage");
    }
    usage.memory_bytes = ReadNumber(memory + "/memory.usage_in_bytes");
    usage.memory_limit_bytes = ReadNumber(memory + "/memory.limit_in_bytes");
    if (usage.memory_limit_bytes.value_or(0) >= kNoLimitOnV1) usage.memory_limit_bytes.reset();
    usage.memory_rss_bytes = Find(stat, "total_rss");
    if (const std::string* pids = Controller("pids")) {
      usage.processes = ReadNumber(*pids + path + "/pids.current");
    }
  }
  usage.page_faults = Find(stat, all + "pgfault");
  usage.major_page_faults = Find(stat, all + "pgmajfault");
  if (usage.memory_bytes) {
    const uint64_t file = Find(stat, all + "inactive_file").value_or(0);
    usage.memory_working_set_bytes = *usage.memory_bytes > file ? *usage.memory_bytes - file : 0;
  }
  return usage;
}

CgroupPressure Cgroups::Pressures(const std::string& path) const {
  if (!unified()) return {};
  const std::string dir = unified_ + path;
  return {ReadPressure(dir + "/cpu.pressure"), ReadPressure(dir + "/memory.pressure"),
          ReadPressure(dir + "/io.pressure")};
}

uint64_t Cgroups::WeightOfShares(uint64_t shares) {
  shares = std::clamp<uint64_t>(shares, 2, 262144);
  return 1 + ((shares - 2) * 9999) / 262142;
}

uint64_t Cgroups::SharesOfWeight(uint64_t weight) {
  weight = std::clamp<uint64_t>(weight, 1, 10000);
  return 2 + ((weight - 1) * 262142) / 9999;
}

}  // namespace keelson::linux
