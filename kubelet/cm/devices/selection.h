// Which devices a container gets. Pure.
#pragma once

#include "kubelet/cm/devices/device.h"
#include "kubelet/cm/topology/provider.h"
#include "lib/base/error.h"

namespace keelson::kubelet::devices {

struct DeviceRequest {
  std::string resource;
  size_t required = 0;
  Ids reusable;              // of the pod's init containers: taken first
  Ids free;                  // healthy and nobody's
  const DeviceMap& devices;  // of the resource
  TopologyHint affinity;     // what the topology manager decided on
};

// What can be decided without the plugin, and what it may choose from.
struct DevicePlan {
  Ids taken;               // for certain
  size_t missing = 0;      // more that are needed
  Ids offered;             // those that the plugin may prefer
  std::vector<Ids> order;  // where the rest comes from: the first while they last, then the next
};

// Devices of the NUMA nodes of `affinity` come before all others. kInvalid, in upstream's words, when there
// are not enough.
Result<DevicePlan> PlanDevices(const DeviceRequest& request);
// `preferred` may be anything, also empty; of it, what was offered is taken.
Ids ChooseDevices(const DevicePlan& plan, const Ids& preferred);

}  // namespace keelson::kubelet::devices
