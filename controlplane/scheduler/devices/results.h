// An allocation in the form of ResourceClaim.status.allocation. Pure but for the random ids of shares.
#pragma once

#include <string>

#include "controlplane/scheduler/devices/allocator.h"

namespace keelson::scheduler {

// `node`: where the pod goes; the result is limited to it if a device is.
resourcev1::AllocationResult ToAllocationResult(const ClaimPlan& claim, const ClaimAllocation& allocation,
                                                const std::string& node);

// How high the alternatives that were taken are in their lists: 8 for a first one, 7 for a second, summed up.
int64_t ScoreOf(const std::vector<ClaimPlan>& claims, const Allocation& allocation);

}  // namespace keelson::scheduler
