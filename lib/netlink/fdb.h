// Forwarding entries of VXLAN devices: which host a hardware address is behind (RTM_*NEIGH of AF_BRIDGE).
#pragma once

#include <vector>

#include "lib/base/ip.h"
#include "lib/netlink/link.h"
#include "lib/netlink/socket.h"

namespace keelson::netlink {

struct Forwarding {
  int link_index = 0;
  MacAddress mac;
  IpAddress destination;  // of the outer packet; of the family of the device's local address
  auto operator<=>(const Forwarding&) const = default;
};

// Permanent; takes the place of another destination of the same hardware address.
Result<> ReplaceForwarding(Socket& socket, const Forwarding& entry);
// False when there was none.
Result<bool> DeleteForwarding(Socket& socket, const Forwarding& entry);
// Of one device.
Result<std::vector<Forwarding>> ListForwarding(Socket& socket, int link_index);

}  // namespace keelson::netlink
