#include "lib/dataplane/ebpf_layout.h"

#include <linux/bpf.h>

#include <algorithm>

#include "lib/dataplane/ebpf_maps.h"

namespace keelson::dataplane {
namespace {

#define KP_MAP_SPEC(name, type, key, value, max_entries, flags) \
  {#name, BPF_MAP_TYPE_##type, sizeof(key), sizeof(value)},
constexpr MapSpec kServiceMaps[] = {KP_SERVICE_MAPS(KP_MAP_SPEC)};
#undef KP_MAP_SPEC

}  // namespace

std::string FamilyPins(const std::string& pin_directory, bool v4) {
  return pin_directory + (v4 ? kPinsV4 : kPinsV6);
}

std::string MapPins() { return kMapPinsPrefix + std::to_string(KP_LAYOUT); }

std::span<const MapSpec> ServiceMaps() { return kServiceMaps; }

const MapSpec* FindServiceMap(std::string_view name) {
  const auto* found = std::find_if(std::begin(kServiceMaps), std::end(kServiceMaps),
                                   [&](const MapSpec& map) { return map.name == name; });
  return found == std::end(kServiceMaps) ? nullptr : found;
}

uint32_t FilterPriority(bool v4) { return v4 ? 19204 : 19206; }

}  // namespace keelson::dataplane
