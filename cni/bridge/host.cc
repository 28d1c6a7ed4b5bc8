#include "cni/bridge/host.h"

#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "lib/linux/sysctl.h"
#include "lib/netlink/addr.h"
#include "lib/netlink/bridge_vlan.h"

namespace keelson::cni {
namespace {

// A bridge without its own MAC takes the lowest of its ports', so containers would see their gateway's MAC
// change.
netlink::MacAddress RandomMac() {
  std::array<uint8_t, 6> bytes{};
  (void)::getrandom(bytes.data(), bytes.size(), 0);
  bytes[0] = static_cast<uint8_t>((bytes[0] & 0xfe) | 0x02);  // unicast, locally administered
  return netlink::MacAddress(bytes);
}

Outcome<netlink::Link> FindOrMake(netlink::Socket& host, const BridgeConfig& config, bool& is_new) {
  Result<netlink::Link> found = netlink::GetLink(host, config.bridge);
  if (!found && found.error().Is(Code::kNotFound)) {
    Result<> made = netlink::CreateBridge(host, config.bridge, config.mtu, RandomMac());
    if (!made && !made.error().Is(Code::kAlreadyExists)) return made.error();
    is_new = made.has_value();
    found = netlink::GetLink(host, config.bridge);
  }
  if (!found) return found.error();
  if (found->kind != "bridge") {
    return CniError{kInvalidConfig, config.bridge + " already exists but is not a bridge", ""};
  }
  return std::move(*found);
}

Outcome<> FilterVlans(netlink::Socket& host, const netlink::Link& bridge) {
  Result<> on = netlink::SetVlanFiltering(host, bridge.index, true);
  if (on) return {};
  if (on.error().errnum() == EOPNOTSUPP) {
    return CniError{kUnsupportedField, "unsupported field vlan: this kernel's bridges do not filter VLANs",
                    "CONFIG_BRIDGE_VLAN_FILTERING"};
  }
  return on.error();
}

}  // namespace

Outcome<netlink::Link> EnsureBridge(netlink::Socket& host, const BridgeConfig& config) {
  bool is_new = false;
  KEELSON_ASSIGN_OR_RETURN(netlink::Link bridge, FindOrMake(host, config, is_new));
  if (config.FiltersVlans() && !bridge.vlan_filtering) {
    Outcome<> filtering = FilterVlans(host, bridge);
    if (!filtering && is_new) (void)netlink::DeleteLink(host, bridge.index);
    if (!filtering) return filtering.error();
  }
  bool promisc = config.promisc && !bridge.promisc;
  if (!bridge.up || promisc) {
    // Ignore routers in the container network.
    (void)linux::EnsureSysctl("net/ipv6/conf/" + config.bridge + "/accept_ra", "0");
    netlink::LinkChange change{.up = true};
    if (promisc) change.promisc = true;
    KEELSON_RETURN_IF_ERROR(netlink::ChangeLink(host, bridge.index, change));
    bridge.up = true;
  }
  return bridge;
}

Outcome<> EnsureGateway(netlink::Socket& host, const netlink::Link& bridge, const IpPrefix& address,
                        bool force) {
  KEELSON_ASSIGN_OR_RETURN(auto present, netlink::ListAddresses(host, bridge.index));
  bool there = false;
  for (const netlink::Address& other : present) {
    if (other.prefix == address) there = true;
    // A bridge may have several IPv6 subnets; an IPv4 address of another subnet is a leftover.
    if (other.prefix == address || other.link_scope || other.prefix.is_v4() != address.is_v4()) continue;
    if (!address.is_v4() && !other.prefix.Overlaps(address)) continue;
    if (!force) {
      return CniError{kInvalidConfig,
                      bridge.name + " already has an IP address different from " + address.ToString(),
                      other.prefix.ToString()};
    }
    KEELSON_RETURN_IF_ERROR(netlink::DeleteAddress(host, bridge.index, other.prefix));
  }
  if (!there) {
    if (!address.is_v4()) (void)linux::EnsureSysctl("net/ipv6/conf/" + bridge.name + "/disable_ipv6", "0");
    Result<> added = netlink::AddAddress(host, bridge.index, address);
    if (!added && !added.error().Is(Code::kAlreadyExists)) return added.error();
  }
  KEELSON_RETURN_IF_ERROR(
      linux::EnsureSysctl(address.is_v4() ? "net/ipv4/ip_forward" : "net/ipv6/conf/all/forwarding", "1"));
  return {};
}

Outcome<netlink::Link> AwaitPort(netlink::Socket& host, int index) {
  // Usually it does so at once.
  int step_us = 50;
  for (int waited_us = 0;; waited_us += step_us, step_us = std::min(2 * step_us, 5000)) {
    KEELSON_ASSIGN_OR_RETURN(netlink::Link port, netlink::GetLink(host, index));
    if (port.oper_up) return port;
    if (waited_us >= 1'000'000) {
      return CniError{kTryAgainLater, "bridge port " + port.name + " does not come up", ""};
    }
    ::usleep(static_cast<useconds_t>(step_us));
  }
}

}  // namespace keelson::cni
