// Internal to lib/netlink: the header of requests about queueing disciplines and filters (rtnetlink(7)).
#pragma once

#include <linux/rtnetlink.h>

#include <string>

#include "lib/netlink/request_internal.h"

namespace keelson::netlink {

inline tcmsg TrafficControl(int link_index, uint32_t parent) {
  tcmsg header{};
  header.tcm_family = AF_UNSPEC;
  header.tcm_ifindex = link_index;
  header.tcm_parent = parent;
  return header;
}

// The end of a request's name in errors.
inline std::string OnLink(int link_index) { return " of link with index " + std::to_string(link_index); }

}  // namespace keelson::netlink
