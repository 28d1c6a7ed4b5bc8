// IP addresses of network interfaces (rtnetlink(7), RTM_*ADDR).
#pragma once

#include <vector>

#include "lib/base/ip.h"
#include "lib/netlink/socket.h"

namespace keelson::netlink {

struct Address {
  int link_index = 0;
  IpPrefix prefix;          // the address with its subnet's length
  bool link_scope = false;  // valid on the link only (169.254/16, fe80::/10, loopback)
};

// Adds an address to a link. IPv6 addresses are usable at once, without duplicate address detection.
// kAlreadyExists when present.
Result<> AddAddress(Socket& socket, int link_index, const IpPrefix& prefix);
// Removes an address from a link. kNotFound (EADDRNOTAVAIL) when absent.
Result<> DeleteAddress(Socket& socket, int link_index, const IpPrefix& prefix);
// The addresses of one link, or of all links with link_index 0; both families.
Result<std::vector<Address>> ListAddresses(Socket& socket, int link_index = 0);

}  // namespace keelson::netlink
