// Asking the kernel which way a packet would take (RTM_GETROUTE without a dump; "ip route get").
#pragma once

#include "lib/netlink/route.h"

namespace keelson::netlink {

// `destination` is the address itself. The error carries ENETUNREACH and the like when there is no way.
Result<Route> LookUpRoute(Socket& socket, const IpAddress& destination);

}  // namespace keelson::netlink
