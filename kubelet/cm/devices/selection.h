// Chooses the devices of a container. Pure.
#pragma once

#include "kubelet/cm/devices/device.h"
#include "kubelet/cm/topology/provider.h"
#include "lib/base/error.h"

namespace keelson::kubelet::devices {

struct DeviceRequest {
  std::string resource;
  size_t required = 0;
  Ids reusable;              // from the pod's init containers: taken first
  Ids free;                  // healthy and not allocated
  const DeviceMap& devices;  // of the resource
  TopologyHint affinity;     // what the topology manager decided on
};

// What is decided without the plugin, and what the plugin may choose from.
struct DevicePlan {
  Ids taken;               // decided
  size_t missing = 0;      // how many more are needed
  Ids offered;             // what the plugin may choose from
  std::vector<Ids> order;  // where the rest is taken from, group by group
};

// Devices of the NUMA nodes of `affinity` come before all others. kInvalid, with
// upstream's message: there are not enough.
Result<DevicePlan> PlanDevices(const DeviceRequest& request);
// The final choice. `preferred` is the plugin's answer: devices in it that were not offered are ignored.
Ids ChooseDevices(const DevicePlan& plan, const Ids& preferred);

}  // namespace keelson::kubelet::devices
