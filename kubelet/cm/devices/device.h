// What device plugins offer and containers are given, as plain values.
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

// Near to which NUMA nodes a device is. Absent: its plugin does not say.
using NumaNodes = std::optional<std::vector<int64_t>>;

struct Device {
  bool healthy = false;
  NumaNodes nodes;
};
using DeviceMap = std::map<std::string, Device>;  // by id

struct PluginOptions {
  bool pre_start = false;             // wants PreStartContainer before each start
  bool preferred_allocation = false;  // answers GetPreferredAllocation
};

// What a plugin wants a container to have with its devices.
struct Grant {
  std::map<std::string, std::string> envs, annotations;
  std::vector<cri::Mount> mounts;
  std::vector<cri::Device> devices;
  std::vector<std::string> cdi_devices;
};

// A device that a container has, or that one could have.
struct ResourceDevice {
  std::string resource, id;
  NumaNodes nodes;
};

// Of the Node object.
struct NodeResource {
  int64_t capacity = 0, allocatable = 0;
  bool operator==(const NodeResource&) const = default;
};

}  // namespace keelson::kubelet::devices
