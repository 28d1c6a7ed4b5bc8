// Computes what the kernel should have from the Nodes and what it has. No I/O.
//
// A peer's pods are reached in one of these ways, chosen per family and peer:
//   host-gw    PODS via PEER dev UPLINK               the peer's address is on a link of this node
//   vxlan      PODS via PODS.0 dev keelson.vx onlink  PODS.0 is at the peer's tunnel MAC (a permanent
//              neighbour), that MAC is behind PEER (a forwarding entry): nothing is learned or flooded
//   ipsec      like the route to PEER itself; the kernel's IPsec policies put packets into ESP
//   wireguard  PODS dev keelson.wg                    the device knows which peer has PODS
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cni/agent/config.h"
#include "cni/agent/node.h"
#include "lib/netlink/addr.h"
#include "lib/netlink/fdb.h"
#include "lib/netlink/link.h"
#include "lib/netlink/neigh.h"
#include "lib/netlink/route.h"
#include "lib/netlink/vxlan.h"

namespace keelson::cni::agent {

// The protocol number of this agent's routes; it owns exactly the routes with this number.
inline constexpr int kRouteProtocol = 75;
// Placeholder for the index of the tunnel device, which may not exist yet.
inline constexpr int kTunnelLink = -1;

struct HostState {
  std::vector<netlink::Link> links;
  std::vector<netlink::Address> addresses;
  std::vector<netlink::Route> routes;  // of the main table, including the agent's own
};

enum class Way { kHostGw, kVxlan, kIpsec, kWireguard };
std::string_view ToString(Way way);

struct PeerPlan {
  std::string name;
  std::optional<IpAddress> address;  // its tunnel endpoint, in the underlay's family; may be missing
  std::vector<IpPrefix> pod_cidrs;   // the accepted ones
  std::string wireguard_key;
  bool operator==(const PeerPlan&) const = default;
};

struct TunnelPlan {
  std::string device;
  netlink::Vxlan vxlan;
  netlink::MacAddress mac;
  int mtu = 0;
  std::vector<IpPrefix> addresses;  // source addresses of this node's own packets into the tunnel
};

struct Plan {
  std::vector<IpPrefix> pod_cidrs;    // this node's, the accepted ones
  std::vector<PeerPlan> peers;        // all that take part, by name
  std::optional<IpAddress> underlay;  // this node's tunnel endpoint
  int uplink = 0;                     // index of the link with that address; 0: none
  int pod_mtu = 0;
  std::optional<TunnelPlan> vxlan;
  std::vector<netlink::Route> routes;
  std::vector<netlink::Neighbor> neighbors;
  std::vector<netlink::Forwarding> forwarding;
  std::vector<std::string> problems;  // what is left out and why, one sentence each
  std::map<Way, int> ways;            // routes by way
};

// `nodes` includes this node. kNotFound when it does not, or when this node has no pod CIDR yet.
Result<Plan> MakePlan(const Config& config, const NodeMap& nodes, const HostState& host);

// The tunnel MAC of a node. Every node computes the same one, so it need not be published.
netlink::MacAddress TunnelMac(std::string_view node_name);
// The route for a packet to `to`, ignoring the agent's own routes; null when there is none.
const netlink::Route* RouteTo(const HostState& host, const IpAddress& to);
// The bytes that encapsulation adds to an underlay packet.
int Overhead(Encryption encryption, bool vxlan, bool v4_underlay);
// The smallest set of prefixes with the same addresses, sorted.
std::vector<IpPrefix> Aggregate(std::vector<IpPrefix> prefixes);

}  // namespace keelson::cni::agent
