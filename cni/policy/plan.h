// The nftables table that enforces NetworkPolicy for the pods of one node. Pure.
//
//   table inet keelson-policy {
//     chain forward { type filter hook forward priority filter;  goto packets4 or packets6 }
//     chain output  { type filter hook output priority filter;   ct state established, related: return;
//                     own addresses: return; goto packets4 or ... }
//     chain input   { type filter hook input priority 101;
//                     daddr in @node4, not established, saddr in a pod CIDR of this node, saddr not in @ready4 : drop
//                     daddr in @node4, not established: saddr vmap @to-node4 }
//     chain packets4 {
//       saddr in a pod CIDR of this node, saddr not in @ready4 : drop
//       daddr in a pod CIDR of this node, daddr not in @ready4 : drop
//       ct state established, related : return
//       saddr vmap @egress4      address of an isolated pod : jump egress4-HASH
//       daddr vmap @ingress4     address of an isolated pod : jump ingress4-HASH
//     }
//     chain ingress4-HASH { saddr . daddr in @self4 : return;  one rule for each clause : return;  drop }
//   }
//
// Pods with the same clauses of the same policies share a chain. A chain's name is a hash of its clauses and a
// set's name a hash of the description of its contents, so a pod more or less changes elements only. The
// comment of a rule names the policies that it comes from.
//
// MakePlan() plans all anew; incremental.h follows single events, and leads to the same table.
//
// Packets are seen after the translation of Services. The hook output has those that IPVS sends on for pods;
// what the node itself sends is never dropped. The hook input has what pods send to the addresses of their own Node object:
// ClusterNetworkPolicies decide about it, NetworkPolicies do not.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cni/policy/clauses.h"
#include "cni/policy/members.h"
#include "cni/policy/objects.h"
#include "lib/nft/model.h"

namespace keelson::cni::policy {

struct Node {
  std::string name;
  std::vector<IpPrefix> pod_cidrs;  // host bits cleared
  std::optional<DeniedLog> log = {};
  bool operator==(const Node&) const = default;
};

struct Plan {
  nft::Ruleset rules;
  size_t isolated = 0;  // pods of this node that a policy isolates
  // The pods that become or stay ready, with the attachment that they are ready for.
  Attachments ready;
};

// `attachments` is what the sets `attached4` and `attached6` hold, and appears in them unchanged.
Plan MakePlan(const Cluster& cluster, const Node& node, const Attachments& attachments);

// Reads the attachments of a table that the kernel holds.
Attachments AttachmentsOf(const nft::Ruleset& found);
// The element of the set of attachments.
nft::Element ElementOf(const IpAddress& address, const Attachment& attachment);

}  // namespace keelson::cni::policy
