// From Nodes and from what the kernel has to what it should have. No I/O.
//
// A peer's pods are reached in one of these ways, chosen a family and peer:
//   host-gw    PODS via PEER dev UPLINK               the peer's address is on a link of this node
//   vxlan      PODS via PODS.0 dev keelson.vx onlink  PODS.0 is at the peer's tunnel MAC (a permanent
//              neighbour), that MAC is behind PEER (a forwarding entry): nothing is learned or flooded
//   ipsec      as the way to PEER itself; the kernel's IPsec policies put packets into ESP on that way
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

// Marks this agent's routes: those with it belong to it, and no others.
inline constexpr int kRouteProtocol = 75;
// Stands for the index of the tunnel device, which may not exist yet.
inline constexpr int kTunnelLink = -1;

struct HostState {
  std::vector<netlink::Link> links;
  std::vector<netlink::Address> addresses;
  std::vector<netlink::Route> routes;  // of the main table, the agent's own among them
};

enum class Way { kHostGw, kVxlan, kIpsec, kWireguard };
std::string_view ToString(Way way);

struct PeerPlan {
  std::string name;
  std::optional<IpAddress> address;  // where its tunnel ends, of the underlay's family; it may have none
  std::vector<IpPrefix> pod_cidrs;   // those that passed
  std::string wireguard_key;
  bool operator==(const PeerPlan&) const = default;
};

struct TunnelPlan {
  std::string device;
  netlink::Vxlan vxlan;
  netlink::MacAddress mac;
  int mtu = 0;
  std::vector<IpPrefix> addresses;  // what this node's own packets into the tunnel come from
};

struct Plan {
  std::vector<IpPrefix> pod_cidrs;    // this node's, those that passed
  std::vector<PeerPlan> peers;        // every one that takes part, by name
  std::optional<IpAddress> underlay;  // this node's address that tunnels begin at
  int uplink = 0;                     // index of the link it is on; 0: on none
  int pod_mtu = 0;
  std::optional<TunnelPlan> vxlan;
  std::vector<netlink::Route> routes;
  std::vector<netlink::Neighbor> neighbors;
  std::vector<netlink::Forwarding> forwarding;
  std::vector<std::string> problems;  // what is left out and why, one sentence each
  std::map<Way, int> ways;            // routes by way
};

// `nodes` with this node among them. kNotFound when it is not, or has no pod CIDR yet.
Result<Plan> MakePlan(const Config& config, const NodeMap& nodes, const HostState& host);

// The tunnel MAC of a node: every node finds the same one, so that nothing has to be published.
netlink::MacAddress TunnelMac(std::string_view node_name);
// The route that a packet to `to` would take, the agent's own routes aside; null when there is none.
const netlink::Route* RouteTo(const HostState& host, const IpAddress& to);
// What encapsulation takes of an underlay packet.
int Overhead(Encryption encryption, bool vxlan, bool v4_underlay);
// The fewest prefixes with the same addresses, sorted.
std::vector<IpPrefix> Aggregate(std::vector<IpPrefix> prefixes);

}  // namespace keelson::cni::agent
