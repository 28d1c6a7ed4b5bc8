// The host's side: the bridge and its gateway addresses.
#pragma once

#include "cni/bridge/config.h"
#include "lib/netlink/link.h"

namespace keelson::cni {

// Finds or makes the bridge, and sets it up. Safe when other plugins do the same at the same time.
Outcome<netlink::Link> EnsureBridge(netlink::Socket& host, const BridgeConfig& config);
// Gives `bridge` (or its gateway for one VLAN) `address`, and enables forwarding for its family. With
// `force`, removes overlapping addresses first.
Outcome<> EnsureGateway(netlink::Socket& host, const netlink::Link& bridge, const IpPrefix& address,
                        bool force);
// Blocks until the bridge port passes packets; kTryAgainLater after a second.
Outcome<netlink::Link> AwaitPort(netlink::Socket& host, int index);

}  // namespace keelson::cni
