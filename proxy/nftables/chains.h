// The fixed part of the proxy's nftables table, and the chains that pick an endpoint.
//
//   nat prerouting, output      -> services
//   services                       daddr . proto . dport -> pick id -> goto pick chain    (Services'
//   addresses)
//                                  proto . dport, daddr one of the node's -> the same     (NodePorts)
//   pick chain                     maybe mark for masquerade; slot = random mod N; dnat to the endpoint in
//                                  that slot. One chain for each N (and way of picking), not for each
//                                  Service.
//   nat postrouting                masquerades what is marked, and a pod that reached itself
//   filter input, forward, output -> filter, for new connections: reject or drop what has no endpoint
//
// Why ids between `services` and `picks`: the kernel walks all verdicts of a table again whenever one is
// added. With verdicts in `picks` only, adding a Service costs the same at ten as at 50 000.
#pragma once

#include <chrono>
#include <compare>
#include <string>
#include <vector>

#include "lib/nft/model.h"

namespace keelson::proxy::nftables {

struct Options {
  bool v4 = true;
  std::string table = "keelson-proxy";
  bool masquerade_all = false;
  uint32_t masquerade_bit = 0x4000;
  std::vector<IpPrefix> pod_cidrs;  // of this family; sources inside are pods
  // Replies between pods of this node would bypass it (a bridge without br_netfilter): such connections
  // are masqueraded, so that replies come back here.
  bool replies_bypass_node = false;

  nft::Table Table() const { return {v4 ? nft::Family::kIpv4 : nft::Family::kIpv6, table}; }
};

enum SetId {
  kServices,
  kPicks,
  kEndpoints,
  kNodePorts,
  kNodePortEndpoints,
  kNodePortIps,
  kClusterIps,
  kRejectServices,
  kDropServices,
  kRejectNodePorts,
  kDropNodePorts,
  kHairpin,
  kLocalEndpoints,
  kLimited,
  kSourceRanges,
  kSticky,
  kNodePortSticky,
  kAffinity,
  kNodePortAffinity,
  kSetCount,
};
const nft::Set& SetOf(SetId id, bool v4);

// How a chain picks. Slots of endpoints on this node start at kLocalSlots where there are two lists.
inline constexpr uint32_t kLocalSlots = 0x10000;
struct PickSpec {
  enum class Kind { kCluster, kExternal, kExternalLocal } kind = Kind::kCluster;
  bool node_port = false;
  uint32_t cluster = 0;  // endpoints
  uint32_t local = 0;    // kExternalLocal only
  std::chrono::seconds affinity{0};
  auto operator<=>(const PickSpec&) const = default;

  std::string ChainName() const;
};
std::vector<nft::Rule> PickRules(const PickSpec& spec, const Options& options);

// Everything but pick chains and elements.
nft::Ruleset FixedRuleset(const Options& options);

}  // namespace keelson::proxy::nftables
