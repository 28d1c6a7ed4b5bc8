// Routes (rtnetlink(7), RTM_*ROUTE).
#pragma once

#include <optional>
#include <vector>

#include "lib/base/ip.h"
#include "lib/netlink/socket.h"

namespace keelson::netlink {

struct Route {
  IpPrefix destination;  // length 0: the default route
  std::optional<IpAddress> gateway;
  std::optional<IpAddress> source;
  int link_index = 0;  // 0: the kernel finds it by the gateway
  int table = 254;     // main
  int metric = 0;      // 0: the family's default
  int scope = -1;      // RT_SCOPE_*; -1: link without a gateway, universe with one
  int mtu = 0, advmss = 0;
  bool onlink = false;  // assume that the gateway is on the link, without an address that says so
  int protocol = 0;     // RTPROT_*: the creator. 0: static when adding, any when deleting
  auto operator<=>(const Route&) const = default;
};

Result<> AddRoute(Socket& socket, const Route& route);      // kAlreadyExists when present
Result<> ReplaceRoute(Socket& socket, const Route& route);  // adds or replaces
Result<> DeleteRoute(Socket& socket, const Route& route);   // kNotFound (ESRCH) when absent
// Unicast routes of the main table (or `table`), both families.
Result<std::vector<Route>> ListRoutes(Socket& socket, int table = 254);

}  // namespace keelson::netlink
