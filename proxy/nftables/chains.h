// The proxy's nftables table: its fixed part, and the chains that pick an endpoint.
//
//   nat prerouting, output   -> services
//   services                    daddr . proto . dport in @services -> dispatch        (Services' addresses)
//                               proto . dport in @nodeports -> dispatch-nodeports     (if daddr is the
//                               node's)
//   dispatch                    for each way of picking: daddr . proto . dport in @use-PICK -> PICK
//   pick chain                  maybe mark for masquerade; slot = random mod N; dnat to the endpoint in that
//                               slot. One chain for each N (and way of picking), not for each Service.
//                               A sticky chain first looks for the client's slot of last time.
//   nat postrouting             masquerades what is marked, and a pod that reached itself
//   filter prerouting, output -> firewall: drops what source ranges keep out, before translation
//   filter input, forward, output-post-dnat -> filter, for new connections: rejects or drops what has no
//                               endpoint, and so was not translated
//   filter forward, output-post-dnat -> cluster-ips: rejects unused ports of cluster IPs, drops unallocated
//   ones
//
// Where IPVS translates (Options::ipvs), Services' addresses are this node's own, and what goes to them comes
// by input: cluster-ips, which holds all of them, stands there too, and lets the used ports through to IPVS,
// which comes after. Pick chains mark only, and there is one for each kind of Service address.
//
// Why sets in `dispatch` and not one verdict map: the kernel walks all verdicts of a table again whenever one
// is added (12 ms at 50 000). So adding a Service costs the same however many there are, and a packet has as
// many more lookups as there are different numbers of endpoints.
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
  // How pods are told from others: by source (of this family), by the bridge or the kind of interface that
  // they are behind. All empty: not at all.
  std::vector<IpPrefix> pod_cidrs;
  std::string pod_bridge;
  std::string pod_interface_prefix;
  // What is masqueraded gets ports below this; 0: any.
  uint16_t masquerade_below = 0;
  // IPVS translates. The rules mark what is to be masqueraded, refuse and drop, and pick an endpoint
  // themselves only where IPVS cannot: for pods and this node to external addresses with policy Local, for
  // which they have another choice than the outside.
  bool ipvs = false;
  // Replies between pods of this node would bypass it (a bridge without br_netfilter): such connections
  // are masqueraded, so that replies come back here. Only where pod_cidrs are known.
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

// How a chain picks. Slots of endpoints on this node start at kFirstLocalSlot where there are two lists.
struct PickSpec {
  enum class Kind { kCluster, kExternal, kExternalLocal } kind = Kind::kCluster;
  bool node_port = false;
  uint32_t cluster = 0;  // slots; all are filled, but where there is affinity
  uint32_t local = 0;    // kExternalLocal only
  std::chrono::seconds affinity{0};
  auto operator<=>(const PickSpec&) const = default;

  std::string ChainName() const;
};

// Chains that are there though nobody picks so yet, and cost packets nothing: those of up to 16 endpoints. To
// add a chain the kernel walks the map that it reads (15 ms of 30 000 Services); while that is empty it is
// quick.
inline constexpr uint32_t kStockPicks = 16;
bool IsStock(const PickSpec& spec);
std::vector<PickSpec> StockPicks(const Options& options);

// The set of the addresses or NodePorts that are picked for so.
nft::Set UseSet(const PickSpec& spec, bool v4);
std::vector<nft::Rule> PickChainRules(const PickSpec& spec, const Options& options);

// `dispatch` or `dispatch-nodeports`, and its rules. `specs` are those of that kind.
const char* DispatchChain(bool node_port);
std::vector<nft::Rule> DispatchRules(bool node_port, const std::vector<PickSpec>& specs,
                                     const Options& options);

// Of the chain kServiceCidrsChain: drops what goes to addresses that no Service has.
std::vector<nft::Rule> ServiceCidrRules(const std::vector<IpPrefix>& cidrs, const Options& options);

// Everything but pick chains, their sets, and elements; the dispatch chains
// and service-cidrs are empty.
nft::Ruleset FixedRuleset(const Options& options);

}  // namespace keelson::proxy::nftables
