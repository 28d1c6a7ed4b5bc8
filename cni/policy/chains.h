// The chains that decide about one direction of a pod's packets.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cni/policy/clauses.h"
#include "lib/nft/model.h"

namespace keelson::cni::policy {

// What applies to a pod in one direction.
struct PodRules {
  // Of the NetworkPolicies that isolate the pod, normalized. Nullopt: none does.
  std::optional<std::vector<Clause>> permitted = {};
  std::vector<std::string> isolated_by = {};  // those policies, "NAMESPACE/NAME"
  // Of ClusterNetworkPolicies, in the order in which they decide: `admin` before NetworkPolicies, `baseline` for a pod that
  // no NetworkPolicy isolates.
  std::vector<Clause> admin = {}, baseline = {};
  bool Any() const { return permitted || !admin.empty() || !baseline.empty(); }
};

// What holds for packets to the pod's own node, of its rules for egress: NetworkPolicies let them through.
PodRules ToOwnNode(const PodRules& egress);

struct ChainSpec {
  std::string name;
  std::vector<Clause> clauses;
  bool isolates = false;  // drops what no clause matches; else that goes on to `next`
  std::string note;       // of the rule that drops it
  std::string next;       // may be empty: the packet passes
};

// The chains for `rules`, of which Any() holds: packets enter the first, each leads to the one behind it. Equal
// rules have equal names.
std::vector<ChainSpec> ChainsFor(const PodRules& rules, Direction direction, bool v4);
// ClusterNetworkPolicies that decide about a pod, of one tier, in their order.
std::vector<const ClusterPolicy*> Deciding(const Cluster& cluster, ClusterPolicy::Tier tier, const Pod& pod);
std::vector<nft::Rule> RulesOf(const ChainSpec& chain, Direction direction, bool v4,
                               const std::optional<DeniedLog>& log);
// The map that leads from a pod's address to its chain: "ingress4".
std::string VerdictsName(Direction direction, bool v4);

}  // namespace keelson::cni::policy
