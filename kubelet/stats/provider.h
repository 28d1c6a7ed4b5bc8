// The stats provider: collects usage of node, pods and containers on demand, for /stats/summary and metrics.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "kubelet/cm/cgroups/pod_cgroups.h"
#include "kubelet/container/paths.h"
#include "kubelet/container/runtime_status.h"
#include "kubelet/cri/runtime.h"
#include "kubelet/stats/fs_usage.h"
#include "kubelet/stats/machine_stats.h"
#include "kubelet/stats/slow_volumes.h"
#include "lib/base/clock.h"
#include "lib/base/mutex.h"

namespace keelson::kubelet {

struct CpuUsage {
  WallTime time;
  uint64_t core_nanos = 0;             // cumulative
  std::optional<uint64_t> nano_cores;  // current rate; nullopt at the first look
};

struct VolumeName {
  std::string name, claim;  // `name`: in the pod's spec
};
struct VolumeUsage : VolumeName {
  FsUsage fs;
};

struct ContainerUsageStats {
  cri::ContainerStats runtime;
  std::string image, id;
  int64_t created_at = 0;
  std::optional<CpuUsage> cpu;
  ContainerCgroup cgroup;
  linux::CgroupAccount account;  // with device names
  uint64_t log_bytes = 0, log_inodes = 0;
};

struct PodUsageStats {
  std::shared_ptr<const corev1::Pod> pod;
  std::optional<CpuUsage> cpu;
  std::string cgroup_path;
  std::string sandbox_id, sandbox_image, sandbox_path;  // of its cgroup; empty: not known
  linux::CgroupUsage cgroup;
  linux::CgroupPressure pressure;
  std::vector<ContainerUsageStats> containers;
  std::vector<InterfaceStats> interfaces;  // none for pods on the host network
  std::vector<VolumeUsage> volumes;
};

struct StatsSnapshot {
  WallTime time;
  MachineStats machine;
  CpuUsage cpu;
  std::vector<InterfaceStats> interfaces;
  FsUsage node_fs, image_fs, container_fs;
  std::vector<DiskUsage> disks;
  int64_t max_pids = 0, processes = 0;
  std::optional<CpuUsage> pods_cpu;
  linux::CgroupUsage pods_cgroup;
  linux::CgroupPressure pressure, pods_pressure;
  std::vector<PodUsageStats> pods;
};

class StatsProvider {  // thread safe
 public:
  using PodsFunction = std::function<std::vector<std::shared_ptr<const corev1::Pod>>()>;
  // The volume at that path; nullopt: unknown.
  using NameFunction =
      std::function<std::optional<VolumeName>(const std::string& uid, const std::string& path)>;
  // PodWorkers::RuntimeStatus.
  using SeenFunction = std::function<std::shared_ptr<const PodRuntimeStatus>(const std::string& uid)>;
  StatsProvider(cri::RuntimeService& runtime, cri::ImageService& images, PodCgroups& cgroups, Paths paths,
                PodsFunction pods, SeenFunction seen, NameFunction name_of,
                std::chrono::milliseconds volume_period, Clock& clock,
                SlowVolumes::Measure measure = FileSystemOf)
      : runtime_(runtime),
        images_(images),
        cgroups_(cgroups),
        paths_(std::move(paths)),
        pods_(std::move(pods)),
        seen_(std::move(seen)),
        name_of_(std::move(name_of)),
        volume_period_(volume_period),
        clock_(clock),
        slow_volumes_(std::move(measure), volume_period, clock) {}

  // CPU and memory only, from cgroups: cheap enough for every few seconds. Asks the runtime only for containers
  // without a cgroup on this machine.
  Result<StatsSnapshot> CollectUse(std::stop_token stop);
  struct Parts {            // besides CPU and memory
    bool usage = false;     // of networks and file systems, and PSI
    bool files = false;     // sizes of logs and volumes
    bool accounts = false;  // per-container cgroup accounts
  };
  Result<StatsSnapshot> Collect(Parts parts, std::stop_token stop);
  // Usage of a volume with its own file system; nullopt: not measured yet, or the volume's plugin does not tell.
  std::optional<FsUsage> OfMount(const std::string& path) { return slow_volumes_.Latest(path); }

 private:
  CpuUsage Cpu(const std::string& key, uint64_t core_nanos) KEELSON_REQUIRES(mutex_);
  StatsSnapshot OfMachine() KEELSON_REQUIRES(mutex_);
  PodUsageStats OfPod(std::shared_ptr<const corev1::Pod> pod) KEELSON_REQUIRES(mutex_);
  bool CollectRunning(PodUsageStats& pod) KEELSON_REQUIRES(mutex_);  // false: not from cgroups
  void ForgetOld() KEELSON_REQUIRES(mutex_);
  void CollectAccount(ContainerUsageStats& container);
  void CollectNode(StatsSnapshot& stats, std::stop_token stop) KEELSON_REQUIRES(mutex_);
  void CollectUsage(PodUsageStats& pod) KEELSON_REQUIRES(mutex_);
  void CollectSandbox(PodUsageStats& pod, const std::string& image);
  std::string PauseImage(std::stop_token stop);
  void CollectFiles(PodUsageStats& pod) KEELSON_REQUIRES(mutex_);
  FsUsage Volume(const std::string& path) KEELSON_REQUIRES(mutex_);

  cri::RuntimeService& runtime_;
  cri::ImageService& images_;
  PodCgroups& cgroups_;
  const Paths paths_;
  const PodsFunction pods_;
  const SeenFunction seen_;
  const NameFunction name_of_;
  const std::chrono::milliseconds volume_period_;
  Clock& clock_;
  SlowVolumes slow_volumes_;
  Mutex mutex_;
  struct Sample {
    SteadyTime at;
    uint64_t core_nanos = 0;
    std::optional<uint64_t> nano_cores;
  };
  std::map<std::string, Sample> samples_ KEELSON_GUARDED_BY(mutex_);
  struct Counted {
    SteadyTime at;
    FsUsage usage;
  };
  std::map<std::string, Counted> volumes_ KEELSON_GUARDED_BY(mutex_);  // by path
};

}  // namespace keelson::kubelet
