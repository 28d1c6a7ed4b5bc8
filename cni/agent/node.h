// What the agent needs of a Node: a few hundred bytes of the ten thousand and more that it has.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/error.h"
#include "lib/base/ip.h"

namespace keelson::cni::agent {

inline constexpr char kWireguardKeyAnnotation[] = "keelson.dev/wireguard-public-key";

struct NodeInfo {
  std::string name;
  std::vector<IpPrefix> pod_cidrs;   // as spec.podCIDRs has them; host bits cleared
  std::vector<IpAddress> addresses;  // InternalIPs, in order
  std::string wireguard_key;         // public, base64; empty: not published
  std::vector<std::string> ignored;  // what could not be understood, in words
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

struct ParsedNode {
  NodeInfo info;
  std::string resource_version;
};
// From a Node's protobuf bytes. An error only when they are no protobuf: invalid addresses
// and CIDRs are put into `ignored`.
Result<ParsedNode> ParseNode(std::string_view raw);

}  // namespace keelson::cni::agent
