// Topology hints of a request for devices. Pure.
#pragma once

#include "kubelet/cm/devices/device.h"
#include "kubelet/cm/topology/provider.h"

namespace keelson::kubelet::devices {

// Whether `node` is in `mask`; false for negative and too large numbers.
inline bool Contains(const NumaMask& mask, int64_t node) {
  return node >= 0 && node < static_cast<int64_t>(mask.size()) && mask.test(static_cast<size_t>(node));
}

// A hint for each of `node_sets` (MachineTopology::NodeSets()) that has `request` devices in `available` and
// `reusable`, and contains the nodes of all `reusable` devices that have any. Preferred are the smallest sets that
// would do if all devices were free.
std::vector<TopologyHint> DeviceHints(const DeviceMap& devices, const Ids& available, const Ids& reusable,
                                      size_t request, const std::vector<NumaMask>& node_sets);

}  // namespace keelson::kubelet::devices
