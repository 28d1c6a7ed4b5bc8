#include "kubelet/cm/devices/hints.h"

#include <algorithm>

namespace keelson::kubelet::devices {
namespace {

bool Near(const Device& device, const NumaMask& mask) {
  return device.nodes && std::any_of(device.nodes->begin(), device.nodes->end(),
                                     [&](int64_t node) { return Contains(mask, node); });
}

// nullopt when the set is not near to a device that has to be part of it.
std::optional<size_t> CountIn(const NumaMask& mask, const DeviceMap& devices, const Ids& available,
                              const Ids& reusable) {
  size_t count = 0;
  for (const std::string& id : reusable) {
    auto it = devices.find(id);
    if (it == devices.end() || !it->second.nodes) continue;
    if (!Near(it->second, mask)) return std::nullopt;
    ++count;
  }
  for (const std::string& id : available) {
    auto it = devices.find(id);
    if (it != devices.end() && Near(it->second, mask)) ++count;
  }
  return count;
}

}  // namespace

std::vector<TopologyHint> DeviceHints(const DeviceMap& devices, const Ids& available, const Ids& reusable,
                                      size_t request, const std::vector<NumaMask>& node_sets) {
  size_t fewest = node_sets.empty() ? 0 : node_sets.back().count();
  std::vector<TopologyHint> hints;
  for (const NumaMask& mask : node_sets) {
    auto all = std::count_if(devices.begin(), devices.end(),
                             [&](const auto& item) { return Near(item.second, mask); });
    if (static_cast<size_t>(all) >= request) fewest = std::min(fewest, mask.count());
    auto count = CountIn(mask, devices, available, reusable);
    if (count && *count >= request) hints.push_back({mask, false});
  }
  for (TopologyHint& hint : hints) hint.preferred = hint.nodes->count() == fewest;
  return hints;
}

}  // namespace keelson::kubelet::devices
