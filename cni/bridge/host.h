// The host's side: the bridge and its gateway addresses.
#pragma once

#include "cni/bridge/config.h"
#include "lib/netlink/link.h"

namespace keelson::cni {

// Finds the bridge or makes it, and brings it up. Safe against others doing the same at the same time.
Outcome<netlink::Link> EnsureBridge(netlink::Socket& host, const BridgeConfig& config);
// Gives `bridge` (or its gateway of one VLAN) `address` and switches forwarding on for its family.
Outcome<> EnsureGateway(netlink::Socket& host, const netlink::Link& bridge, const IpPrefix& address,
                        bool force);
// Blocks until the bridge port passes packets, for a second at most; kTryAgainLater then.
Outcome<netlink::Link> AwaitPort(netlink::Socket& host, int index);

}  // namespace keelson::cni
