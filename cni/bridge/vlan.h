// VLANs of bridge ports.
#pragma once

#include "cni/bridge/config.h"
#include "lib/netlink/link.h"

namespace keelson::cni {

// Puts a port into the configuration's VLANs. The bridge filters VLANs already.
Outcome<> SetPortVlans(netlink::Socket& host, int port_index, const BridgeConfig& config);
// kCheckFailed when it is not in them.
Outcome<> CheckPortVlans(netlink::Socket& host, int port_index, const BridgeConfig& config);

// The host's own interface in the containers' VLAN, which takes the gateway addresses: one end of a veth pair
// whose other end is a port like the containers'. Made when it is not there: "cni0.100".
Outcome<netlink::Link> EnsureVlanGateway(netlink::Socket& host, const netlink::Link& bridge,
                                         const BridgeConfig& config);

// A name for a host's end of a veth pair.
std::string RandomVethName();

}  // namespace keelson::cni
