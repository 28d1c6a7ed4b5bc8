// Which container has which devices. Not thread safe.
#pragma once

#include "kubelet/cm/devices/device.h"
#include "lib/api/types.h"

namespace keelson::kubelet::devices {

struct Allocation {                                     // of one resource to one container
  std::map<std::string, std::vector<int64_t>> devices;  // id -> NUMA nodes at the time of allocation
  Grant grant;

  Ids ids() const;
};

class PodDevices {
 public:
  using Allocations = std::map<std::string, Allocation>;  // by resource
  using Containers = std::map<std::string, Allocations>;  // by name

  void Insert(const std::string& uid, const std::string& container, const std::string& resource,
              Allocation allocation);
  bool Remove(const std::string& uid);  // false when the pod had nothing

  const Allocations* Find(const std::string& uid, const std::string& container) const;
  const Allocation* Find(const std::string& uid, const std::string& container,
                         const std::string& resource) const;
  bool Any(const std::string& resource) const;  // whether any container has devices of it
  Ids InUse(const std::string& resource) const;
  Ids OfPod(const std::string& uid, const std::string& resource) const;
  Ids Holders(const std::string& resource, const Ids& devices) const;  // uids of pods
  // The pod's devices that `container` can take over: those of init containers, which have ended when it starts,
  // but not those of sidecars.
  Ids Reusable(const corev1::Pod& pod, const std::string& container, const std::string& resource) const;
  Ids Uids() const;
  const std::map<std::string, Containers>& pods() const { return pods_; }  // by uid

 private:
  std::map<std::string, Containers> pods_;
};

// Adds the plugins' grants to the container's configuration. If two set the same thing the first wins; what the pod
// sets itself comes later in the lists, and wins over both.
void AddGrants(const PodDevices::Allocations& allocations, cri::ContainerConfig& config);

}  // namespace keelson::kubelet::devices
