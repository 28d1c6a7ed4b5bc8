// Creates the cgroups of pods, and says how they are named:
//
//   cgroupfs  /kubepods/burstable/pod0a1b-2c3d                the kubelet, by plain files
//   systemd   /kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod0a1b_2c3d.slice
//             systemd, as transient slices (systemd.slice(5)); what it does not manage is set by files
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/error.h"
#include "lib/linux/cgroup.h"
#include "lib/linux/systemd.h"

namespace keelson::kubelet {

using CgroupName = std::vector<std::string>;  // {"kubepods", "burstable", "pod0a1b-2c3d"}

class CgroupDriver {  // thread safe
 public:
  virtual ~CgroupDriver() = default;
  // The path below the hierarchies' root.
  virtual std::string Path(const CgroupName& name) const = 0;
  // The last part of the name of a directory below `parent`; nullopt: it is no cgroup of this driver's.
  virtual std::optional<std::string> LastPart(const CgroupName& parent,
                                              const std::string& directory) const = 0;
  virtual Result<> Create(const CgroupName& name, const linux::CgroupLimits& limits) = 0;
  // Succeeds if there is none. kUnavailable: processes are inside.
  virtual Result<> Remove(const CgroupName& name) = 0;
};

std::unique_ptr<CgroupDriver> NewCgroupfsDriver(const linux::Cgroups& cgroups);
std::unique_ptr<CgroupDriver> NewSystemdDriver(const linux::Cgroups& cgroups,
                                               std::unique_ptr<linux::SystemdUnits> units);

}  // namespace keelson::kubelet
