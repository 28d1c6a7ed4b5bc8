// Asks the kernel which route a packet would take (RTM_GETROUTE without a dump; "ip route get").
#pragma once

#include "lib/netlink/route.h"

namespace keelson::netlink {

// The route to `destination`. The error carries ENETUNREACH and the like when there is no route.
Result<Route> LookUpRoute(Socket& socket, const IpAddress& destination);

}  // namespace keelson::netlink
