// The parts of a Node that the agent needs: its labels, and a few hundred bytes, out of ten thousand or more.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cni/policy/plan.h"
#include "lib/base/error.h"
#include "lib/base/ip.h"

namespace keelson::cni::agent {

inline constexpr char kWireguardKeyAnnotation[] = "keelson.dev/wireguard-public-key";

struct NodeInfo {
  std::string name;
  std::vector<IpPrefix> pod_cidrs;   // from spec.podCIDRs; host bits cleared
  std::vector<IpAddress> addresses;  // InternalIPs, in order
  policy::ClusterNode as_peer;       // of network policies
  std::string wireguard_key;         // public, base64; empty: not published
  std::vector<std::string> ignored;  // text about fields that cannot be parsed
  bool operator==(const NodeInfo&) const = default;

  // The first InternalIP of a family; null when there is none.
  const IpAddress* AddressOf(bool v4) const {
    for (const IpAddress& address : addresses) {
      if (address.is_v4() == v4) return &address;
    }
    return nullptr;
  }
};

using NodeMap = std::map<std::string, NodeInfo, std::less<>>;

// This node, as its network policies need it. kUnavailable while it, or its pod CIDRs, are not known.
Result<policy::Node> PolicyNode(const std::shared_ptr<const NodeMap>& nodes, const std::string& name);

// All nodes, as peers of network policies.
policy::ClusterNodes PolicyPeers(const NodeMap& nodes);

struct ParsedNode {
  NodeInfo info;
  std::string resource_version;
};
// Parses a Node's protobuf bytes. An error only when they are not protobuf: `ignored` gets invalid
// addresses and CIDRs.
Result<ParsedNode> ParseNode(std::string_view raw);

}  // namespace keelson::cni::agent
