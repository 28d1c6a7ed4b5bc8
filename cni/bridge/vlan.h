// VLANs of bridge ports.
#pragma once

#include "cni/bridge/config.h"
#include "lib/netlink/link.h"

namespace keelson::cni {

// Adds a port to the configuration's VLANs. VLAN filtering is already on.
Outcome<> SetPortVlans(netlink::Socket& host, int port_index, const BridgeConfig& config);
// kCheckFailed when the port is not in them.
Outcome<> CheckPortVlans(netlink::Socket& host, int port_index, const BridgeConfig& config);

// The host's own interface in the containers' VLAN, which gets the gateway addresses: one end of a veth
// pair whose other end is a port like the containers'. Makes it ("cni0.100") if it is missing.
Outcome<netlink::Link> EnsureVlanGateway(netlink::Socket& host, const netlink::Link& bridge,
                                         const BridgeConfig& config);

// A random name for the host's end of a veth pair.
std::string RandomVethName();

}  // namespace keelson::cni
