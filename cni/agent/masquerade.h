// Packets from this node's pods leave the cluster with the node's address:
//
//   table inet keelson-agent {
//     chain postrouting { type nat hook postrouting priority srcnat;
//       nfproto ipv4, saddr & MASK == POD CIDR : jump leaving }
//     chain leaving { daddr in the cluster's CIDRs, other nodes' pod CIDRs, multicast : accept
//                     masquerade }
//
// A connection's first packet decides about NAT: changes of these rules do not affect established
// connections.
#pragma once

#include <string>
#include <vector>

#include "lib/base/ip.h"
#include "lib/nft/kernel.h"

namespace keelson::cni::agent {

inline constexpr char kNftTable[] = "keelson-agent";

// `inside`: destinations for which packets keep their source. Pure.
nft::Ruleset MasqueradeRules(const std::vector<IpPrefix>& own_pods, const std::vector<IpPrefix>& inside);

// Applies `wanted` in one transaction if the table differs; true if it did.
Result<bool> EnsureMasquerade(nft::Kernel& kernel, const nft::Ruleset& wanted);
Result<> RemoveMasquerade(nft::Kernel& kernel);  // absent is fine

}  // namespace keelson::cni::agent
