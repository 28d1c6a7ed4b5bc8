// Neighbours: ARP and NDP entries (RTM_*NEIGH). For the forwarding entries of VXLAN devices see fdb.h.
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

// Adds an entry, or replaces the one for the same link and address.
Result<> ReplaceNeighbor(Socket& socket, const Neighbor& neighbor);
// False: there was no such entry.
Result<bool> DeleteNeighbor(Socket& socket, int link_index, const IpAddress& address);
Result<std::vector<Neighbor>> ListNeighbors(Socket& socket, int link_index);

}  // namespace keelson::netlink
