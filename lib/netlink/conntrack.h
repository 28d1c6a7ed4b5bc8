// Connection tracking entries (ctnetlink): listing and deleting.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "lib/base/ip.h"
#include "lib/netlink/socket.h"

namespace keelson::netlink {

// A tracked connection. `destination` is the address that the first packet was sent to; `replier` is the
// one that answers, after translation.
struct Flow {
  uint8_t protocol = 0;
  IpAddress source, destination, replier;
  uint16_t source_port = 0, destination_port = 0, replier_port = 0;
  std::string tuple;  // raw CTA_TUPLE_ORIG attribute; identifies the entry
};

// The entries of one family and protocol (IPPROTO_UDP, ...). `socket` comes from Socket::OpenNetfilter().
Result<std::vector<Flow>> ListFlows(Socket& socket, bool v4, uint8_t protocol);
// The entries of all protocols that have `address` as source, destination or replier.
Result<std::vector<Flow>> ListFlowsOf(Socket& socket, const IpAddress& address);
// As above, for several addresses, which may be of either family.
Result<std::vector<Flow>> ListFlowsOf(Socket& socket, const std::set<IpAddress>& addresses);
// False: the entry had already gone.
Result<bool> DeleteFlow(Socket& socket, const Flow& flow);

}  // namespace keelson::netlink
