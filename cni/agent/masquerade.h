// What leaves the cluster from this node's pods does so with the node's own address:
//
//   table inet keelson-agent {
//     chain postrouting { type nat hook postrouting priority srcnat;
//       nfproto ipv4, saddr & MASK == POD CIDR : jump leaving }
//     chain leaving { daddr in the cluster's CIDRs, other nodes' pod CIDRs, multicast : accept
//                     masquerade }
//
// NAT is decided by a connection's first packet: changes of these rules leave established ones alone.
#pragma once

#include <string>
#include <vector>

#include "lib/base/ip.h"
#include "lib/nft/kernel.h"

namespace keelson::cni::agent {

inline constexpr char kNftTable[] = "keelson-agent";

// `inside`: where packets keep their source. Pure.
nft::Ruleset MasqueradeRules(const std::vector<IpPrefix>& own_pods, const std::vector<IpPrefix>& inside);

// In one transaction, if anything differs; true if it did.
Result<bool> EnsureMasquerade(nft::Kernel& kernel, const nft::Ruleset& wanted);
Result<> RemoveMasquerade(nft::Kernel& kernel);  // absent is fine

}  // namespace keelson::cni::agent
