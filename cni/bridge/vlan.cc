#include "cni/bridge/vlan.h"

#include <sys/random.h>

#include <algorithm>
#include <cstdio>

#include "lib/netlink/bridge_vlan.h"

namespace keelson::cni {
namespace {

std::vector<netlink::PortVlan> Wanted(const BridgeConfig& config) {
  std::vector<netlink::PortVlan> out;
  if (config.vlan != 0) {
    out.push_back({.id = static_cast<uint16_t>(config.vlan), .pvid = true, .untagged = true});
  }
  for (int id : config.trunk) out.push_back({.id = static_cast<uint16_t>(id)});
  return out;
}

}  // namespace

std::string RandomVethName() {
  uint32_t number = 0;
  (void)::getrandom(&number, sizeof number, 0);
  char name[16];
  std::snprintf(name, sizeof name, "veth%08x", number);
  return name;
}

Outcome<> SetPortVlans(netlink::Socket& host, int port_index, const BridgeConfig& config) {
  if (!config.preserve_default_vlan) {
    KEELSON_ASSIGN_OR_RETURN(auto present, netlink::ListPortVlans(host, port_index));
    for (const netlink::PortVlan& vlan : present) {
      KEELSON_RETURN_IF_ERROR(netlink::DeletePortVlan(host, port_index, vlan.id));
    }
  }
  for (const netlink::PortVlan& vlan : Wanted(config)) {
    KEELSON_RETURN_IF_ERROR(netlink::AddPortVlan(host, port_index, vlan));
  }
  return {};
}

Outcome<> CheckPortVlans(netlink::Socket& host, int port_index, const BridgeConfig& config) {
  KEELSON_ASSIGN_OR_RETURN(auto present, netlink::ListPortVlans(host, port_index));
  for (const netlink::PortVlan& vlan : Wanted(config)) {
    if (std::find(present.begin(), present.end(), vlan) == present.end()) {
      return CniError{kCheckFailed, "bridge port is not in VLAN " + std::to_string(vlan.id), ""};
    }
  }
  return {};
}

Outcome<netlink::Link> EnsureVlanGateway(netlink::Socket& host, const netlink::Link& bridge,
                                         const BridgeConfig& config) {
  std::string name = bridge.name + "." + std::to_string(config.vlan);
  if (name.size() > 15) return CniError{kInvalidConfig, "interface name " + name + " is too long", ""};
  Result<netlink::Link> found = netlink::GetLink(host, name);
  if (!found && found.error().Is(Code::kNotFound)) {
    std::string port_name = RandomVethName();
    Result<> made = netlink::CreateVeth(host, {.name = port_name, .master = bridge.index, .up = true},
                                        {.name = name}, bridge.mtu);
    if (!made && !made.error().Is(Code::kAlreadyExists)) return made.error();
    if (made) {
      KEELSON_ASSIGN_OR_RETURN(netlink::Link port, netlink::GetLink(host, port_name));
      KEELSON_RETURN_IF_ERROR(SetPortVlans(host, port.index, config));
    }
    found = netlink::GetLink(host, name);
  }
  if (!found) return found.error();
  if (!found->up) KEELSON_RETURN_IF_ERROR(netlink::SetUp(host, found->index));
  return std::move(*found);
}

}  // namespace keelson::cni
