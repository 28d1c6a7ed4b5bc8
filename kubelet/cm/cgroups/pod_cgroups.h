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

// Usage of the cgroup that the runtime made for a container; empty: there is none.
struct ContainerCgroup {
  std::string path;
  linux::CgroupUsage usage;
  linux::CgroupPressure pressure;
};

class PodCgroups {  // thread safe
 public:
  using PodPtr = std::shared_ptr<const corev1::Pod>;
  virtual ~PodCgroups() = default;
  // Creates what does not depend on pods: kubepods, burstable, besteffort, and the limits of reserved cgroups.
  virtual Result<> Start(const NodeContext& node) = 0;
  // Creates the pod's cgroup and sets its limits. Idempotent.
  virtual Result<> Ensure(const corev1::Pod& pod, const NodeContext& node) = 0;
  // The cgroup parent for the pod's sandbox, in the driver's form; empty: pods have no cgroups.
  virtual std::string Parent(const corev1::Pod& pod) const = 0;
  // Removes the pod's cgroup, in whichever QoS class it is, and kills processes inside. An error until they are
  // gone; succeeds if there is no cgroup.
  virtual Result<> Remove(const std::string& uid) = 0;
  virtual std::set<std::string> Uids() const = 0;  // of pods that have a cgroup
  virtual linux::CgroupUsage Usage(const corev1::Pod& pod) const = 0;
  // Sets the limits of the QoS cgroups from the requests of all running pods. False: nothing had to be changed.
  virtual Result<bool> UpdateQosCgroups(const std::vector<PodPtr>&, const NodeContext&) { return false; }
  virtual linux::CgroupUsage UsageOfAll() const { return {}; }  // of all pods
  virtual linux::CgroupPressure PressureOfAll() const { return {}; }
  virtual linux::CgroupPressure PressureOfNode() const { return {}; }
  virtual linux::CgroupPressure PressureOf(const corev1::Pod&) const { return {}; }
  virtual ContainerCgroup Container(const corev1::Pod&, const std::string& /*id*/) const { return {}; }
  // Kills all processes in the container's cgroup; false: there are none.
  virtual bool KillContainer(const corev1::Pod&, const std::string& /*id*/) { return false; }
  virtual linux::CgroupAccount Account(const std::string& /*path*/) const { return {}; }
  // Notifies when memory runs short. Index 0: of the machine, 1: of all pods. Null: not supported.
  virtual std::unique_ptr<linux::MemoryAlarm> WatchMemory() const { return nullptr; }
  // Any process of the pod, to enter its namespaces.
  virtual std::optional<pid_t> AnyProcess(const corev1::Pod&) const { return std::nullopt; }
};

// systemReservedCgroup or kubeReservedCgroup, with the limits that enforceNodeAllocatable asks for.
struct ReservedCgroup {
  std::string what, path;
  linux::CgroupLimits limits;
};

struct CgroupOptions {
  std::string root;              // cgroupRoot; "/" or empty: the hierarchy's root
  bool per_qos = true;           // cgroupsPerQOS; false: no pod cgroups at all, containers go below root
  int64_t pod_pids_limit = -1;   // podPidsLimit
  bool pressure = true;          // read PSI: feature gate KubeletPSI
  linux::CgroupLimits all_pods;  // of all pods together
  std::optional<int> memory_percent_reserved;  // qosReserved
  int64_t pods_memory = 0;                     // memory of all pods, which that percentage refers to
  std::vector<ReservedCgroup> reserved;
};

// Without a driver: cgroupfs.
std::unique_ptr<PodCgroups> NewPodCgroups(linux::Cgroups cgroups, const CgroupOptions& options,
                                          std::unique_ptr<CgroupDriver> driver = nullptr);

}  // namespace keelson::kubelet
