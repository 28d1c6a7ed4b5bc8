// The queueing discipline "clsact" of an interface, to which filters for incoming and outgoing packets
// attach (rtnetlink(7), RTM_*QDISC and RTM_*TFILTER; tc(8)). It queues nothing.
#pragma once

#include "lib/netlink/socket.h"

namespace keelson::netlink {

// Also true for "ingress", which excludes clsact.
Result<bool> HasClsact(Socket& socket, int link_index);
// Removes clsact unless it has filters, whoever made them. True: it has been removed. False: it has
// filters, or was absent.
Result<bool> RemoveIdleClsact(Socket& socket, int link_index);

}  // namespace keelson::netlink
