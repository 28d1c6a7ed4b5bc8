// The parts of the table `inet keelson-policy` that depend on the node alone (plan.h shows the whole table).
#pragma once

#include "cni/policy/plan.h"
#include "lib/nft/model.h"

namespace keelson::cni::policy {

// Hooks, the chains `packets4` and `packets6`, and the sets that they name, empty.
nft::Ruleset BaseRules(const Node& node);
// A pod that sends itself something by a Service, in a chain of NetworkPolicies: they let it through.
nft::Rule ToItself(const std::string& chain, bool v4);

// The sets that BaseRules() names, beside those of lib/dataplane/policy_sets.h.
nft::Set SelfSet(bool v4);  // address . address: isolated pods that reach themselves
nft::Set VerdictsSet(Direction direction, bool v4);
nft::Set ThisNodeSet(bool v4);    // address: those of Node objects that this node has
nft::Set ToThisNodeSet(bool v4);  // address : jump to the chain that decides what a pod sends to this node

}  // namespace keelson::cni::policy
