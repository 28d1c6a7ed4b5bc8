// The parts of the table `inet keelson-policy` that depend on the node alone (plan.h shows the whole table).
#pragma once

#include "cni/policy/plan.h"
#include "lib/nft/model.h"

namespace keelson::cni::policy {

// Hooks, the chains `packets4` and `packets6`, and the sets that they name, empty.
nft::Ruleset BaseRules(const Node& node);

// The sets that BaseRules() names, beside those of lib/dataplane/policy_sets.h.
nft::Set SelfSet(bool v4);  // address . address: isolated pods that reach themselves
nft::Set VerdictsSet(Direction direction, bool v4);

}  // namespace keelson::cni::policy
