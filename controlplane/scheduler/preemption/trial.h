// Which pods would have to leave a node so that a pod fits: the fewest and least important, budgets first. No
// I/O.
#pragma once

#include <string>
#include <vector>

#include "controlplane/scheduler/framework/evictor.h"

namespace keelson::scheduler {

// Of these pods, in no order.
Victims MakeVictims(std::vector<PodPtr> pods, size_t violations);

// Leaves `node` and what is counted in `state` as they were.
Victims FindVictims(const Framework& framework, Reasons& reasons, CycleState& state, const PodInfo& pod,
                    NodeInfo& node, const std::vector<Budget>& budgets);

// The place of the node whose victims are missed least; `candidates` is not empty.
size_t LeastMissed(const std::vector<const Victims*>& candidates);

}  // namespace keelson::scheduler
