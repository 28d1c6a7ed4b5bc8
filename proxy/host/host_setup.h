// Kernel parameters that kube-proxy sets.
#pragma once

#include "lib/base/error.h"
#include "proxy/config/config.h"

namespace keelson::proxy {

// Sets the limits of connection tracking. A parameter that the kernel refuses (in a network namespace, say)
// is logged. The table becomes larger if need be, never smaller.
void SetConntrackLimits(const ConntrackLimits& limits);

// The least size of the table in entries; 0: any. Pure.
int WantedConntrackMax(const ConntrackLimits& limits, int cores);

// Switches IPv4 forwarding on, without which no Service works. A failure is logged: a read-only /proc/sys may
// have it on already. IPv6 forwarding is left to the node's network setup: with it a host drops routes that
// it learned from router advertisements.
void EnsureForwarding();

// Sets this process's oom_score_adj. A failure is logged.
void SetOomScore(int score);

}  // namespace keelson::proxy
