// The container's side: addresses and routes of its interface.
#pragma once

#include "cni/lib/plugin.h"
#include "lib/netlink/link.h"

namespace keelson::cni {

// The MAC address of a container's interface, derived from its IP address: a reused IP address has the same
// MAC, so neighbours never hold stale entries.
netlink::MacAddress MacFor(const IpAddress& address);

// Adds the result's addresses, sets the interface up and adds the routes.
Outcome<> ConfigureContainer(netlink::Socket& container, const netlink::Link& link, const AddResult& result);
// kCheckFailed when an address or a route of `result` is missing.
Outcome<> CheckContainer(netlink::Socket& container, const netlink::Link& link, const AddResult& result);

}  // namespace keelson::cni
