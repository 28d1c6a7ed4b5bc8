// What upstream's proxy modes leave in the kernel. A node that changes over would otherwise translate every
// packet by two sets of rules, one of which nobody follows any more.
#pragma once

#include <string>
#include <string_view>

#include "lib/dataplane/nftables_names.h"
#include "lib/nft/kernel.h"
#include "lib/nft/program.h"

namespace keelson::proxy {

// Takes kube-proxy's chains out of a table of iptables-nft, with the rules that lead to them; empty when
// there are none. Chains of the kubelet and of others stay. Pure.
nft::Transaction WithoutProxyChains(const nft::LiveTable& table);
// The same for iptables-legacy: from what iptables-save says to input for iptables-restore --noflush.
std::string WithoutProxyChains(std::string_view saved);

// The nftables table that mode ipvs has beside its virtual servers.
inline std::string IpvsTable(const std::string& own_table) { return own_table + dataplane::kIpvsTableSuffix; }

// Removes the tables of mode nftables (unless `own_table` has their name), the chains of mode iptables, and
// the sets of mode ipvs. Of the calling thread's network namespace, which is `kernel`'s too. Needs no
// programs, but for two things: iptables-legacy-save and -restore where the kernel has tables of
// iptables-legacy, and ipset where there was mode ipvs. The first failure; the rest is tried all the same.
Result<> RemoveLeftovers(nft::Kernel& kernel, const std::string& own_table);

// Removes the device of mode ipvs and all virtual servers, whoever's they were; connections end. Without the
// device nothing is done.
Result<> RemoveVirtualServers();

}  // namespace keelson::proxy
