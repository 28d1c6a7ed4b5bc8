// The proxy's nftables table: its fixed part, and the chains that pick an endpoint.
//
//   nat prerouting, output   -> services
//   services                    daddr . proto . dport in @services -> dispatch        (addresses of Services)
//                               proto . dport in @nodeports -> dispatch-nodeports     (if daddr is a node IP)
//   dispatch                    for each PickSpec: daddr . proto . dport in @use-PICK -> PICK
//   pick chain                  maybe mark for masquerade; slot = random mod N; dnat to the endpoint in that
//                               slot. One chain for each N (and PickSpec), not for each Service.
//                               A chain with session affinity first looks for the client's previous slot.
//   nat postrouting             masquerades marked packets, and a pod that reaches itself
//   filter prerouting, output -> firewall: drops packets from outside of the source ranges, before translation
//   filter input, forward, output-post-dnat -> filter, for new connections: rejects or drops packets to Services
//                               without endpoints, which were not translated
//   filter forward, output-post-dnat -> cluster-ips: rejects unused ports of cluster IPs, drops packets to
//                               unallocated ones
//
// Where IPVS translates (Options::ipvs), the node has the addresses of Services itself and packets to them pass
// the input hook. Therefore input jumps to cluster-ips too, which lets used ports through to IPVS behind it. Pick
// chains only mark, and there is one for each kind of Service address.
//
// `dispatch` uses sets and not one verdict map: the kernel walks all verdicts of a table again when one is added
// (12 ms at 50 000). With sets, adding a Service has a constant cost, and a packet takes one lookup for each
// different number of endpoints.
#pragma once

#include <chrono>
#include <compare>
#include <string>
#include <vector>

#include "lib/dataplane/nftables_names.h"
#include "lib/dataplane/nftables_sets.h"
#include "lib/nft/model.h"

namespace keelson::proxy::nftables {

struct Options {
  bool v4 = true;
  std::string table = dataplane::kDefaultTable;
  bool masquerade_all = false;
  uint32_t masquerade_bit = 1u << dataplane::kDefaultMasqueradeBit;
  // How rules recognise pods: by source (of this family), by their bridge, or by the prefix of their interfaces.
  // All empty: they do not.
  std::vector<IpPrefix> pod_cidrs;
  std::string pod_bridge;
  std::string pod_interface_prefix;
  // Masqueraded connections get source ports below this; 0: any.
  uint16_t masquerade_below = 0;
  // IPVS translates. The rules mark connections for masquerading, reject and drop. They pick an endpoint only
  // where IPVS cannot: for pods and this node to external addresses with policy Local, which have other endpoints
  // than clients outside.
  bool ipvs = false;
  // Replies between pods of this node would bypass the rules (a bridge without br_netfilter): masquerade such
  // connections, so that replies return here. Needs pod_cidrs.
  bool replies_bypass_node = false;

  bool DetectsPods() const {
    return !pod_cidrs.empty() || !pod_bridge.empty() || !pod_interface_prefix.empty();
  }

  nft::Table Table() const { return {v4 ? nft::Family::kIpv4 : nft::Family::kIpv6, table}; }
};

using dataplane::kFirstLocalSlot;
using dataplane::SetId;
using dataplane::SetOf;
using enum dataplane::SetId;

// How a chain picks an endpoint. With two lists, slots of endpoints on this node start at kFirstLocalSlot.
struct PickSpec {
  enum class Kind { kCluster, kExternal, kExternalLocal } kind = Kind::kCluster;
  bool node_port = false;
  uint32_t cluster = 0;  // slots; all are filled, except with session affinity
  uint32_t local = 0;    // kExternalLocal only
  std::chrono::seconds affinity{0};
  auto operator<=>(const PickSpec&) const = default;

  std::string ChainName() const;
};

// Chains that exist before a Service uses them: those of up to 16 endpoints. An unused chain costs packets nothing.
// To add a chain the kernel walks the map that the chain reads (15 ms at 30 000 Services), which is fast while the
// map is empty.
inline constexpr uint32_t kStockPicks = 16;
bool IsStock(const PickSpec& spec);
std::vector<PickSpec> StockPicks(const Options& options);

// The set of the addresses or NodePorts that use the chain.
nft::Set UseSet(const PickSpec& spec, bool v4);
std::vector<nft::Rule> PickChainRules(const PickSpec& spec, const Options& options);

// `dispatch` or `dispatch-nodeports`, and its rules. `specs`: those of that kind.
const char* DispatchChain(bool node_port);
std::vector<nft::Rule> DispatchRules(bool node_port, const std::vector<PickSpec>& specs,
                                     const Options& options);

// The rules of kServiceCidrsChain: drop packets to addresses without a Service.
std::vector<nft::Rule> ServiceCidrRules(const std::vector<IpPrefix>& cidrs, const Options& options);

// Everything but pick chains, their sets, and elements; the dispatch chains
// and service-cidrs are empty.
nft::Ruleset FixedRuleset(const Options& options);

}  // namespace keelson::proxy::nftables
