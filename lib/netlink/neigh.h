// Neighbours: ARP and NDP entries, and forwarding entries of bridges and VXLAN (RTM_*NEIGH).
#pragma once

#include <vector>

#include "lib/base/ip.h"
#include "lib/netlink/link.h"
#include "lib/netlink/socket.h"

namespace keelson::netlink {

struct Neighbor {
  int link_index = 0;
  IpAddress address;
  MacAddress mac;
  bool permanent = false;
};

Result<> ReplaceNeighbor(Socket& socket, const Neighbor& neighbor);
// False when there was none.
Result<bool> DeleteNeighbor(Socket& socket, int link_index, const IpAddress& address);
Result<std::vector<Neighbor>> ListNeighbors(Socket& socket, int link_index);

}  // namespace keelson::netlink
