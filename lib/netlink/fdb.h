// Forwarding entries of VXLAN devices: which host is behind a hardware address (RTM_*NEIGH of AF_BRIDGE).
#pragma once

#include <vector>

#include "lib/base/ip.h"
#include "lib/netlink/link.h"
#include "lib/netlink/socket.h"

namespace keelson::netlink {

struct Forwarding {
  int link_index = 0;
  MacAddress mac;
  IpAddress destination;  // outer destination, in the family of the device's local address
  auto operator<=>(const Forwarding&) const = default;
};

// Adds a permanent entry. It replaces an entry for the same hardware address.
Result<> ReplaceForwarding(Socket& socket, const Forwarding& entry);
// False: there was no such entry.
Result<bool> DeleteForwarding(Socket& socket, const Forwarding& entry);
// The entries of one device.
Result<std::vector<Forwarding>> ListForwarding(Socket& socket, int link_index);

}  // namespace keelson::netlink
