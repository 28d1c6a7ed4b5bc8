// What kube-proxy asks of the machine beyond its tables.
#pragma once

#include "lib/base/error.h"
#include "proxy/config/config.h"

namespace keelson::proxy {

// Kernel parameters of connection tracking. Where the kernel says no (in a network namespace, say) that is
// logged and left. The table is made larger if need be, never smaller.
void SetConntrackLimits(const ConntrackLimits& limits);

// Entries that the table should have at least; 0: as it is. Pure.
int WantedConntrackMax(const ConntrackLimits& limits, int cores);

// Without forwarding no Service works; a read-only /proc/sys may have it on already. IPv6's is left to who
// sets the node's network up: switching it on makes a host forget the routes that it learned from routers.
void EnsureForwarding();

void SetOomScore(int score);

}  // namespace keelson::proxy
