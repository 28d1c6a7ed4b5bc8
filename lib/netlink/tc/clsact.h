// The queueing discipline "clsact" of an interface, which filters of what comes in and goes out hang on
// (rtnetlink(7), RTM_*QDISC and RTM_*TFILTER; tc(8)). It queues nothing.
#pragma once

#include "lib/netlink/socket.h"

namespace keelson::netlink {

// Or "ingress", in whose place there can be no clsact.
Result<bool> HasClsact(Socket& socket, int link_index);
// Unless it has filters, whoever's. Whether it has gone; absent is fine.
Result<bool> RemoveIdleClsact(Socket& socket, int link_index);

}  // namespace keelson::netlink
