// VLAN filtering of bridges (rtnetlink, AF_BRIDGE; bridge(8) "vlan"). Kernels without
// CONFIG_BRIDGE_VLAN_FILTERING answer EOPNOTSUPP.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/netlink/socket.h"

namespace keelson::netlink {

struct PortVlan {
  uint16_t id = 0;
  bool pvid = false;      // untagged incoming frames belong to it
  bool untagged = false;  // its outgoing frames have no tag
  bool operator==(const PortVlan&) const = default;
};

Result<> SetVlanFiltering(Socket& socket, int bridge_index, bool on);
// Adds the port to the VLAN, or changes its flags there.
Result<> AddPortVlan(Socket& socket, int port_index, const PortVlan& vlan);
Result<> DeletePortVlan(Socket& socket, int port_index, uint16_t id);
Result<std::vector<PortVlan>> ListPortVlans(Socket& socket, int port_index);

}  // namespace keelson::netlink
