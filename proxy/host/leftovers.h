// Removes what upstream's proxy modes leave in the kernel. Otherwise a node that changes to this kube-proxy
// translates packets by two sets of rules, one of which is out of date.
#pragma once

#include <string>
#include <string_view>

#include "lib/dataplane/nftables_names.h"
#include "lib/nft/kernel.h"
#include "lib/nft/program.h"

namespace keelson::proxy {

// A transaction that removes kube-proxy's chains from a table of iptables-nft, with the rules that jump to
// them; empty when there are none. Chains of the kubelet and of others stay. Pure.
nft::Transaction WithoutProxyChains(const nft::LiveTable& table);
// The same for iptables-legacy: takes the output of iptables-save, returns input for iptables-restore
// --noflush.
std::string WithoutProxyChains(std::string_view saved);

// The nftables table that mode ipvs has beside its virtual servers.
inline std::string IpvsTable(const std::string& own_table) { return own_table + dataplane::kIpvsTableSuffix; }

// Removes the tables of mode nftables (unless `own_table` has their name), the chains of mode iptables, and
// the sets of mode ipvs, from the calling thread's network namespace, which must be `kernel`'s too. Runs
// iptables-legacy-save and -restore only where the kernel has tables of iptables-legacy, and ipset only where
// there was mode ipvs. Returns the first failure, after it has tried the rest.
Result<> RemoveLeftovers(nft::Kernel& kernel, const std::string& own_table);

// Removes the device of mode ipvs and all virtual servers, also those of other programs; connections end.
// Does nothing where there is no such device.
Result<> RemoveVirtualServers();

}  // namespace keelson::proxy
