// Names of kube-proxy's nftables objects. Each table is there for `ip` and for `ip6`.
//
//   keelson-proxy        mode nftables
//   keelson-proxy-ipvs   beside IPVS, in mode ipvs
//   keelson-proxy-ebpf   below the eBPF programs, in mode ebpf
//
// Sets and maps with the forms of their elements are in nftables_sets.h.
#pragma once

namespace keelson::dataplane {

inline constexpr char kDefaultTable[] = "keelson-proxy";
// What modes add to the table's name; mode nftables adds nothing.
inline constexpr char kIpvsTableSuffix[] = "-ipvs", kEbpfTableSuffix[] = "-ebpf";

// The bit of the packet mark that says: to be masqueraded.
inline constexpr unsigned kDefaultMasqueradeBit = 14;

// Base chains: at hooks.
inline constexpr char kNatPreroutingChain[] = "nat-prerouting", kNatOutputChain[] = "nat-output",
                      kNatPostroutingChain[] = "nat-postrouting";
inline constexpr char kFilterPreroutingChain[] = "filter-prerouting", kFilterInputChain[] = "filter-input",
                      kFilterForwardChain[] = "filter-forward", kFilterOutputChain[] = "filter-output",
                      kFilterOutputPostDnatChain[] = "filter-output-post-dnat";

// From Services' addresses to the chains that pick endpoints.
inline constexpr char kServicesChain[] = "services", kDispatchChain[] = "dispatch",
                      kDispatchNodePortsChain[] = "dispatch-nodeports";
// What is let in, refused or dropped.
inline constexpr char kFirewallChain[] = "firewall", kFilterChain[] = "filter",
                      kClusterIpsChain[] = "cluster-ips", kServiceCidrsChain[] = "service-cidrs",
                      kRejectChain[] = "reject";

// Chains that pick an endpoint: pick-3, pick-external-3, pick-local-3-1, nodeport-3, nodeport-local-3-1, each
// with -sticky-SECONDS where there is session affinity.
inline constexpr char kPickChainPrefix[] = "pick-", kNodePortPickChainPrefix[] = "nodeport-";
inline constexpr char kPickExternal[] = "external-", kPickLocal[] = "local-", kPickAffinity[] = "-sticky-";
// The set of what a pick chain picks for: use-CHAIN.
inline constexpr char kUseSetPrefix[] = "use-";

}  // namespace keelson::dataplane
