// Writes of ResourceClaims in a binding cycle, and what drivers answer to them.
#pragma once

#include <chrono>
#include <string>

#include "controlplane/scheduler/types/pod_info.h"
#include "lib/api/proto/resource_v1.pb.h"
#include "lib/base/clock.h"
#include "lib/client/rest.h"

namespace keelson::scheduler {

namespace resourcev1 = api::resource::v1;

// Adds the pod to status.reservedFor. With an allocation (null: the claim has one), adds the finalizer first, and writes the
// allocation together with the reservation. Reads the claim anew after a conflict. Returns the claim as stored. An error, in
// upstream's words, when the claim is deleted or was allocated meanwhile. Blocks.
Result<resourcev1::ResourceClaim> BindClaim(const client::RestClient& api,
                                            const resourcev1::ResourceClaim& claim,
                                            const resourcev1::AllocationResult* allocation,
                                            const PodInfo& pod, WallTime now);

// Takes the pod of that UID out of status.reservedFor. Blocks.
Result<> ReleaseClaim(const client::RestClient& api, const resourcev1::ResourceClaim& claim,
                      const std::string& pod_uid);

// Whether all binding conditions of the claim's devices are true (KEP-5007). An error: a binding failure condition is.
Result<bool> IsReadyForBinding(const resourcev1::ResourceClaim& claim);
// Whether the claim's devices have had `timeout` since their allocation to become bound.
bool IsBindingTimedOut(const resourcev1::ResourceClaim& claim, std::chrono::milliseconds timeout,
                       WallTime now);

}  // namespace keelson::scheduler
