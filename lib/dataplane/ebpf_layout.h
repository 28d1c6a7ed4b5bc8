// Where mode ebpf's maps, programs and filters are in the kernel. Pure.
//
//   PINS/v4/maps-1/services ...    maps of IPv4 (ebpf_maps.h), each by its name; PINS/v6 is the same for IPv6
//   PINS/v4/connect4 ...           links of the programs for sockets, each by its program's name
//   PINS/fast/maps-1/fast_programs the map of both families
//   PINS/fast/INDEX                link of the XDP program at an interface
//   PINS/clsact/INDEX              says that kube-proxy has made the interface's clsact
//   tc filters                     at interfaces, by priority and program name
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace keelson::dataplane {

inline constexpr char kDefaultPinDirectory[] = "/sys/fs/bpf/keelson";
// Below the pin directory.
inline constexpr char kPinsV4[] = "/v4", kPinsV6[] = "/v6", kPinsXdp[] = "/fast", kPinsClsact[] = "/clsact";

std::string FamilyPins(const std::string& pin_directory, bool v4);
// "maps-1", below FamilyPins() or kPinsXdp.
std::string MapPins();
// A directory of maps, of whichever layout.
inline constexpr char kMapPinsPrefix[] = "maps-";
// Names of pins end so while kube-proxy replaces a map.
inline constexpr char kNewPinSuffix[] = "-new";

struct MapSpec {
  const char* name;
  uint32_t type;  // BPF_MAP_TYPE_*
  size_t key_size, value_size;
};
// Of KP_SERVICE_MAPS, in that order.
std::span<const MapSpec> ServiceMaps();
// Null: there is none of that name.
const MapSpec* FindServiceMap(std::string_view name);

// Programs for sockets: with the suffix 4 or 6, one for each family of sockets.
inline constexpr const char* kSocketCalls[] = {"recvmsg", "getpeername", "connect", "sendmsg"};
// Filters at interfaces (tc) that external traffic comes in by and goes out by, and the program at drivers.
inline constexpr char kIngressFilter[] = "from_outside", kEgressFilter[] = "to_outside";
inline constexpr char kXdpProgram[] = "fast_outside", kXdpEntryProgram[] = "fast_entry";

// Of both filters. Others have room to come first.
uint32_t FilterPriority(bool v4);

}  // namespace keelson::dataplane
