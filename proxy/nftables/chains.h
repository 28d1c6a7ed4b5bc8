// The proxy's nftables table: its fixed part, and the chains that pick an endpoint.
//
//   nat prerouting, output   -> services
//   services                    daddr . proto . dport in @services -> dispatch        (Services' addresses)
//                               proto . dport in @nodeports -> dispatch-nodeports     (if daddr is the
//                               node's)
//   dispatch                    for each way of picking: daddr . proto . dport in @use-PICK -> PICK
//   pick chain                  maybe mark for masquerade; slot = random mod N; dnat to the endpoint in that
//                               slot. One chain for each N (and way of picking), not for each Service.
//   nat postrouting             masquerades what is marked, and a pod that reached itself
//   filter input, forward, output -> filter, for new connections: reject or drop what has no endpoint
//
// Why sets in `dispatch` and not one verdict map: the kernel walks all verdicts of a table again whenever one
// is added (12 ms at 50 000). So adding a Service costs the same however many there are, and a packet has as
// many more lookups as there are different numbers of endpoints.
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
// The set of the addresses or NodePorts that are picked for so.
nft::Set UseSet(const PickSpec& spec, bool v4);
std::vector<nft::Rule> PickRules(const PickSpec& spec, const Options& options);

// `dispatch` or `dispatch-nodeports`, and its rules. `specs` are those of that kind.
const char* DispatchChain(bool node_port);
std::vector<nft::Rule> DispatchRules(bool node_port, const std::vector<PickSpec>& specs,
                                     const Options& options);

// Everything but pick chains, their sets, and elements; the dispatch chains are empty.
nft::Ruleset FixedRuleset(const Options& options);

}  // namespace keelson::proxy::nftables
