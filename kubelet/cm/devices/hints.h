// Where on the machine a request for devices can be met. Pure.
#pragma once

#include "kubelet/cm/devices/device.h"
#include "kubelet/cm/topology/provider.h"

namespace keelson::kubelet::devices {

// Whether a device's node is one of `mask`'s; nodes that no machine has are in none.
inline bool Contains(const NumaMask& mask, int64_t node) {
  return node >= 0 && node < static_cast<int64_t>(mask.size()) && mask.test(static_cast<size_t>(node));
}

// A hint for each of `node_sets` (MachineTopology::NodeSets()) that has `request` devices of `available` and
// `reusable`, and is near to all of `reusable` that are near to any. Those of the fewest nodes that could
// ever do, were all devices free, are preferred.
std::vector<TopologyHint> DeviceHints(const DeviceMap& devices, const Ids& available, const Ids& reusable,
                                      size_t request, const std::vector<NumaMask>& node_sets);

}  // namespace keelson::kubelet::devices
