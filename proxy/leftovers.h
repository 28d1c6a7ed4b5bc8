// What upstream's proxy modes leave in the kernel. A node that changes over would otherwise translate every
// packet by two sets of rules, one of which nobody follows any more.
#pragma once

#include <string>
#include <string_view>

#include "lib/nft/kernel.h"

namespace keelson::proxy {

// From what iptables-save says: input for iptables-restore --noflush that takes kube-proxy's chains away and
// the rules that lead to them; empty when there are none. Chains of the kubelet and of others stay. Pure.
std::string WithoutProxyChains(std::string_view saved);

// Removes the tables of mode nftables (unless `own_table` has their name), the chains of mode iptables, and
// of mode ipvs also its device, virtual servers and sets. Programs (iptables-save, ipvsadm, ipset) are run
// only where there are traces. The first failure; the rest is tried all the same.
Result<> RemoveLeftovers(nft::Kernel& kernel, const std::string& own_table);

}  // namespace keelson::proxy
