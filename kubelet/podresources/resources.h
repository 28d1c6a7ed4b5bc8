// Plain values of the PodResources v1 API, and the interface that provides them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kubelet/cm/devices/device.h"

namespace keelson::kubelet::podresources {

struct MemoryBlock {
  std::string type;  // memory, hugepages-2Mi
  uint64_t bytes = 0;
  std::vector<int64_t> nodes;
};

// A device of a resource claim (KEP-3063).
struct ClaimDevice {
  std::vector<std::string> cdi_devices;
  std::string driver, pool, device;
  std::string share_id;  // empty: the device is not shared
};
struct Claim {
  std::string name, ns;
  std::vector<ClaimDevice> devices;
};

struct ContainerResources {
  std::string name;
  bool sidecar = false;
  std::vector<devices::ResourceDevice> devices;
  std::vector<int64_t> cpus;  // exclusive ones
  std::vector<MemoryBlock> memory;
  std::vector<Claim> claims;
};
struct PodResources {
  std::string name, ns;
  std::vector<ContainerResources> containers;
};
// What could be allocated if nothing were.
struct AllocatableResources {
  std::vector<devices::ResourceDevice> devices;
  std::vector<int64_t> cpus;
  std::vector<MemoryBlock> memory;
};

class Lister {  // thread safe
 public:
  virtual ~Lister() = default;
  virtual std::vector<PodResources> List() = 0;  // of active pods
  // nullopt: no active pod of that name.
  virtual std::optional<PodResources> Get(const std::string& ns, const std::string& name) = 0;
  virtual AllocatableResources Allocatable() = 0;
};

}  // namespace keelson::kubelet::podresources
