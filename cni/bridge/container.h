// The container's side: addresses and routes of its interface.
#pragma once

#include "cni/lib/plugin.h"
#include "lib/netlink/link.h"

namespace keelson::cni {

// The MAC address of a container's interface is made from its IP address: an address that is given to
// another container comes with the same MAC, so no neighbour ever holds a stale entry.
netlink::MacAddress MacFor(const IpAddress& address);

// Adds the result's addresses, brings the interface up and adds the routes.
Outcome<> ConfigureContainer(netlink::Socket& container, const netlink::Link& link, const AddResult& result);
// kCheckFailed when an address or a route of `result` is missing.
Outcome<> CheckContainer(netlink::Socket& container, const netlink::Link& link, const AddResult& result);

}  // namespace keelson::cni
