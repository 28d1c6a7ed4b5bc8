// The cgroup tree of pods, by quality of service:
//
//   <cgroupRoot>/kubepods/pod<uid>             Guaranteed
//                        /burstable/pod<uid>
//                        /besteffort/pod<uid>
//
// under the names that the driver gives them (cgroup_driver.h).
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "kubelet/cm/cgroups/cgroup_driver.h"
#include "kubelet/container/node_context.h"
#include "lib/api/types.h"
#include "lib/base/error.h"
#include "lib/linux/cgroup.h"
#include "lib/linux/memory_alarm.h"

namespace keelson::kubelet {

// What the cgroup tells that the runtime made for a container; empty where there is none.
struct ContainerCgroup {
  std::string path;
  linux::CgroupUsage usage;
  linux::CgroupPressure pressure;
};

class PodCgroups {  // thread safe
 public:
  using PodPtr = std::shared_ptr<const corev1::Pod>;
  virtual ~PodCgroups() = default;
  // Makes the parts of the tree that are there with any pods or none.
  virtual Result<> Start(const NodeContext& node) = 0;
  // Makes the pod's cgroup and sets its limits; idempotent.
  virtual Result<> Ensure(const corev1::Pod& pod, const NodeContext& node) = 0;
  // What the runtime is told as the parent of the pod's containers; empty when pods have no cgroups.
  virtual std::string Parent(const corev1::Pod& pod) const = 0;
  // Whatever its class was. Absent is fine. Processes that are left inside are killed: an error until they
  // are gone.
  virtual Result<> Remove(const std::string& uid) = 0;
  virtual std::set<std::string> Uids() const = 0;  // of pods that have a cgroup
  virtual linux::CgroupUsage Usage(const corev1::Pod& pod) const = 0;
  // Gives classes of pods as wholes what `pods`, all that run, have asked for. False, and cheap: nothing has
  // changed.
  virtual Result<bool> UpdateQosCgroups(const std::vector<PodPtr>&, const NodeContext&) { return false; }
  virtual linux::CgroupUsage UsageOfAll() const { return {}; }  // of all pods
  virtual linux::CgroupPressure PressureOfAll() const { return {}; }
  virtual linux::CgroupPressure PressureOfNode() const { return {}; }
  virtual linux::CgroupPressure PressureOf(const corev1::Pod&) const { return {}; }
  virtual ContainerCgroup Container(const corev1::Pod&, const std::string& /*id*/) const { return {}; }
  // Kills all that is in the container's own cgroup; false: nothing is.
  virtual bool KillContainer(const corev1::Pod&, const std::string& /*id*/) { return false; }
  virtual linux::CgroupAccount Account(const std::string& /*path*/) const { return {}; }
  // Index 0: of the machine, 1: of all pods. null: nobody tells.
  virtual std::unique_ptr<linux::MemoryAlarm> WatchMemory() const { return nullptr; }
  // Of the pod's, whichever: a way into its namespaces.
  virtual std::optional<pid_t> AnyProcess(const corev1::Pod&) const { return std::nullopt; }
};

// A cgroup of the administrator's (system-reserved, kube-reserved) that is held to what is set aside for it.
struct ReservedCgroup {
  std::string what, path;
  linux::CgroupLimits limits;
};

struct CgroupOptions {
  std::string root;              // cgroupRoot; "/" or empty: the hierarchy's root
  bool per_qos = true;           // cgroupsPerQOS; false: no pod cgroups at all, containers go below root
  int64_t pod_pids_limit = -1;   // podPidsLimit
  bool pressure = true;          // whether it is looked at: feature gate KubeletPSI
  linux::CgroupLimits all_pods;  // of all pods together
  std::optional<int> memory_percent_reserved;  // qosReserved
  int64_t pods_memory = 0;                     // of which that is kept from lower classes
  std::vector<ReservedCgroup> reserved;
};

// Without a driver by plain files.
std::unique_ptr<PodCgroups> NewPodCgroups(linux::Cgroups cgroups, const CgroupOptions& options,
                                          std::unique_ptr<CgroupDriver> driver = nullptr);

}  // namespace keelson::kubelet
