// The choice of victims: as few and as unimportant pods as possible, and PodDisruptionBudgets kept where
// possible. No I/O.
#pragma once

#include <string>
#include <vector>

#include "controlplane/scheduler/preemption/executor.h"

namespace keelson::scheduler {

// Victims made of `pods`, which may be in any order, with their cost.
Victims MakeVictims(std::vector<PodPtr> pods, size_t num_pdb_violations);

// A dry run on `node`: the pods of lower priority that must leave for `pod` to fit. No pods and a reason when
// that does not help. `node` and `state` are changed meanwhile, and are as before in the end.
Victims SelectVictimsOnNode(const Framework& framework, Reasons& reasons, CycleState& state,
                            const PodInfo& pod, NodeInfo& node, const std::vector<DisruptionBudget>& budgets);

// The position of the candidate with the least cost. `candidates` is not empty.
size_t PickOneNodeForPreemption(const std::vector<const Victims*>& candidates);

}  // namespace keelson::scheduler
