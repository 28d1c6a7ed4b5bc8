#include "proxy/ebpf/devices.h"

#include <fnmatch.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <optional>

#include "lib/bpf/tc.h"
#include "lib/dataplane/ebpf_codec.h"
#include "lib/dataplane/ebpf_layout.h"
#include "lib/linux/sysctl.h"
#include "lib/netlink/xfrm.h"

namespace keelson::proxy::ebpf {
namespace {

std::optional<uint32_t> HeaderOf(const netlink::Link& link) {
  if (link.mac != netlink::MacAddress()) return 14;
  constexpr std::array kBare = {"wireguard", "tun", "ipip", "sit", "ip6tnl", "gre", "ip6gre", "vti", "xfrm"};
  if (std::find(kBare.begin(), kBare.end(), link.kind) != kBare.end()) return 0;
  return std::nullopt;
}

bool IsNamed(const netlink::Link& link, const std::vector<std::string>& names) {
  return std::any_of(names.begin(), names.end(), [&](const std::string& pattern) {
    return ::fnmatch(pattern.c_str(), link.name.c_str(), 0) == 0;
  });
}

bool IsPods(const netlink::Link& link, const DeviceOptions& options) {
  if (!options.pod_bridge.empty() && link.name == options.pod_bridge) return true;
  return !options.pod_interface_prefix.empty() && link.name.starts_with(options.pod_interface_prefix);
}

bool IsOutside(const netlink::Link& link, const std::vector<netlink::Address>& addresses,
               const DeviceOptions& options) {
  if (link.kind == "dummy" || IsPods(link, options)) return false;
  bool has_address = false;
  for (const netlink::Address& address : addresses) {
    if (address.link_index != link.index || address.link_scope) continue;
    has_address = true;
    for (const IpPrefix& cidr : options.pod_cidrs) {
      if (cidr.Contains(address.prefix.address())) return false;
    }
  }
  return has_address;
}

bpf::TcPlace PlaceOf(int link_index, bool v4, bool ingress) {
  return {.link_index = link_index, .ingress = ingress, .priority = dataplane::FilterPriority(v4)};
}

// Only what is ours goes.
Result<> DetachOne(const bpf::TcPlace& place) {
  KEELSON_ASSIGN_OR_RETURN(std::optional<std::string> name, bpf::TcProgramAt(place));
  if (name != (place.ingress ? dataplane::kIngressFilter : dataplane::kEgressFilter)) return {};
  return bpf::DetachTc(place);
}

template <typename T>
Result<> KeepOnly(const bpf::Map& map, const std::map<int, T>& wanted) {
  KEELSON_ASSIGN_OR_RETURN(std::vector<bpf::Map::Entry> there, map.Dump());
  for (const auto& [key, value] : there) {
    uint32_t index = 0;
    std::memcpy(&index, key.data(), sizeof index);
    if (!wanted.contains(static_cast<int>(index))) KEELSON_RETURN_IF_ERROR(map.Delete(key));
  }
  return {};
}

Result<> DetachFrom(netlink::Socket& socket, int link_index, bool v4, const OwnClsact& clsact) {
  for (bool ingress : {true, false}) KEELSON_RETURN_IF_ERROR(DetachOne(PlaceOf(link_index, v4, ingress)));
  return clsact.Release(socket, link_index);
}

Result<> DetachAll(bool v4, const OwnClsact& clsact) {
  KEELSON_ASSIGN_OR_RETURN(netlink::Socket socket, netlink::Socket::Open());
  KEELSON_ASSIGN_OR_RETURN(std::vector<netlink::Link> links, netlink::ListLinks(socket));
  KEELSON_RETURN_IF_ERROR(clsact.Forget(links));
  for (const netlink::Link& link : links) KEELSON_RETURN_IF_ERROR(DetachFrom(socket, link.index, v4, clsact));
  return {};
}

}  // namespace

std::map<int, uint32_t> ExternalDevices(const std::vector<netlink::Link>& links,
                                        const std::vector<netlink::Address>& addresses,
                                        const DeviceOptions& options) {
  std::map<int, uint32_t> out;
  for (const netlink::Link& link : links) {
    if (link.loopback) continue;
    if (options.names.empty() ? !IsOutside(link, addresses, options) : !IsNamed(link, options.names)) {
      continue;
    }
    if (std::optional<uint32_t> header = HeaderOf(link)) out.emplace(link.index, *header);
  }
  return out;
}

std::map<int, DirectDevice> DirectDevices(const std::map<int, uint32_t>& devices,
                                          const std::vector<netlink::Link>& links,
                                          const std::vector<netlink::Address>& addresses, bool v4) {
  std::map<int, DirectDevice> out;
  for (const netlink::Address& address : addresses) {
    if (address.link_scope || address.prefix.is_v4() != v4 || !devices.contains(address.link_index)) continue;
    // The first one of a device is what the kernel chooses, too.
    DirectDevice& way = out[address.link_index];
    if (way.mtu != 0) continue;
    way.address = address.prefix.address();
    for (const netlink::Link& link : links) {
      if (link.index == address.link_index) way.mtu = static_cast<uint32_t>(link.mtu);
    }
  }
  return out;
}

// What is sent on is not encrypted. And its ports must not be those of the node's own sockets.
bool Devices::MaySendOn() const {
  if (!options_.direct) return false;
  if (Result<netlink::Socket> socket = netlink::Socket::OpenXfrm()) {
    Result<std::vector<netlink::XfrmPolicy>> policies = netlink::ListPolicies(*socket);
    if (policies && std::any_of(policies->begin(), policies->end(), [](const netlink::XfrmPolicy& policy) {
          return policy.direction == netlink::XfrmPolicy::Direction::kOut;
        })) {
      return false;
    }
  }
  Result<std::string> range = linux::ReadSysctl("net/ipv4/ip_local_port_range");
  int first = 0, last = 0;
  return range && std::sscanf(range->c_str(), "%d %d", &first, &last) == 2 && last < KP_FIRST_SNAT_PORT;
}

// A device is in the maps while programs are on it, which look there.
Result<> Devices::Attach(const DevicePrograms& programs, const DeviceMaps& maps, bool all) {
  return netns_.Run([&]() -> Result<> {
    KEELSON_ASSIGN_OR_RETURN(netlink::Socket socket, netlink::Socket::Open());
    KEELSON_ASSIGN_OR_RETURN(std::vector<netlink::Link> links, netlink::ListLinks(socket));
    KEELSON_ASSIGN_OR_RETURN(std::vector<netlink::Address> addresses, netlink::ListAddresses(socket));
    const std::map<int, uint32_t> wanted = ExternalDevices(links, addresses, options_);
    std::map<int, DirectDevice> ways;
    if (MaySendOn()) ways = DirectDevices(wanted, links, addresses, v4_);
    for (const auto& [index, way] : ways) {
      dataplane::DirectDeviceEntry value{.address = {}, .mtu = way.mtu};
      dataplane::EncodeIp(way.address, value.address);
      KEELSON_RETURN_IF_ERROR(maps.direct.Put(static_cast<uint32_t>(index), value));
    }
    KEELSON_RETURN_IF_ERROR(KeepOnly(maps.direct, ways));
    for (const auto& [index, header] : wanted) {
      KEELSON_RETURN_IF_ERROR(
          maps.devices.Put(static_cast<uint32_t>(index), dataplane::DeviceEntry{.link_header = header}));
      KEELSON_RETURN_IF_ERROR(AttachTo(socket, index, programs));
    }
    for (const netlink::Link& link : links) {
      if (wanted.contains(link.index) || !(all || attached_.contains(link.index))) continue;
      KEELSON_RETURN_IF_ERROR(DetachFrom(socket, link.index, v4_, clsact_));
    }
    KEELSON_RETURN_IF_ERROR(clsact_.Forget(links));
    KEELSON_RETURN_IF_ERROR(KeepOnly(maps.devices, wanted));
    attached_ = wanted;
    std::erase_if(links, [&](const netlink::Link& link) {
      return ways.empty() || !wanted.contains(link.index) || !WantsXdp(link, options_.xdp);
    });
    return AttachXdp(programs.xdp, maps.xdp, links, all);
  });
}

// Where there are any: drivers repeat what filters send on, and that only.
Result<> Devices::AttachXdp(const bpf::Program& program, const bpf::Map& map,
                            const std::vector<netlink::Link>& links, bool all) {
  std::map<int, dataplane::XdpDeviceEntry> ready;
  if (!links.empty()) {
    KEELSON_ASSIGN_OR_RETURN(ready, xdp_.Attach(program, links, all));
  } else if (all || xdp_.attached()) {
    KEELSON_RETURN_IF_ERROR(xdp_.Detach());
  }
  for (const auto& [index, value] : ready) {
    KEELSON_RETURN_IF_ERROR(map.Put(static_cast<uint32_t>(index), value));
  }
  return KeepOnly(map, ready);
}

Result<> Devices::AttachTo(netlink::Socket& socket, int link_index, const DevicePrograms& programs) const {
  // Answers first: what comes in is translated only when they can be.
  for (bool ingress : {false, true}) {
    const bpf::Program& program = ingress ? programs.ingress : programs.egress;
    const bpf::TcPlace place = PlaceOf(link_index, v4_, ingress);
    KEELSON_ASSIGN_OR_RETURN(bool there, bpf::IsAttachedTc(program, place));
    if (there) continue;
    KEELSON_RETURN_IF_ERROR(clsact_.Note(socket, link_index));
    KEELSON_RETURN_IF_ERROR(bpf::AttachTc(program, place));
  }
  return {};
}

Result<> Devices::Detach() {
  attached_.clear();
  KEELSON_RETURN_IF_ERROR(xdp_.Detach());
  return netns_.Run([this] { return DetachAll(v4_, clsact_); });
}

Result<> DetachFilters(const std::string& pin_directory) {
  const OwnClsact clsact(pin_directory);
  for (bool v4 : {true, false}) KEELSON_RETURN_IF_ERROR(DetachAll(v4, clsact));
  return clsact.ForgetAll();
}

}  // namespace keelson::proxy::ebpf
