// Plain values of the device manager: what plugins offer, and what containers are allocated.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "kubelet/cri/types.h"

namespace keelson::kubelet::devices {

using Ids = std::set<std::string>;  // of devices of one resource

// The NUMA nodes that a device is near to; nullopt: the plugin does not say.
using NumaNodes = std::optional<std::vector<int64_t>>;

struct Device {
  bool healthy = false;
  NumaNodes nodes;
};
using DeviceMap = std::map<std::string, Device>;  // by id

struct PluginOptions {
  bool pre_start = false;             // PreStartContainer has to be called before each start
  bool preferred_allocation = false;  // answers GetPreferredAllocation
};

// What a plugin's Allocate answers: what the container needs to use its devices.
struct Grant {
  std::map<std::string, std::string> envs, annotations;
  std::vector<cri::Mount> mounts;
  std::vector<cri::Device> devices;
  std::vector<std::string> cdi_devices;
};

// A device of a resource.
struct ResourceDevice {
  std::string resource, id;
  NumaNodes nodes;
};

// An extended resource in the node's status.
struct NodeResource {
  int64_t capacity = 0, allocatable = 0;
  bool operator==(const NodeResource&) const = default;
};

}  // namespace keelson::kubelet::devices
