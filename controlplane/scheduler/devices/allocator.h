// The search for devices (KEP-4381, structured parameters; upstream's dynamic-resource-allocation/structured). Pure.
//
// A depth-first search over claims, their requests, the alternatives of each, and the devices of the node's pools, in the order
// of the lists. The first complete solution counts. Devices of one request are taken in the order of the list only: their
// other orders are the same solution.
//
// A device may be taken when nothing else uses it (a request with admin access comes beside other users; a device that
// allows multiple allocations needs enough capacity), it matches all selectors, the request tolerates its taints, the counters of
// its pool suffice, and no constraint of the claim is violated.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "controlplane/scheduler/devices/claim_plan.h"
#include "controlplane/scheduler/devices/pools.h"
#include "controlplane/scheduler/devices/uses.h"
#include "lib/base/clock.h"

namespace keelson::scheduler {

// A device for a request.
struct PickedDevice {
  const Pool* pool;
  uint32_t device;  // in pool->devices()
  const RequestPlan* request;
  bool share = false;  // the device allows multiple allocations
  Capacity consumed;   // by this share
};

struct ClaimAllocation {
  std::vector<PickedDevice> devices;
  std::vector<size_t> alternatives;  // taken, by request
};

// By claim, in their order.
using Allocation = std::vector<ClaimAllocation>;

struct SearchLimits {
  SteadyTime deadline = SteadyTime::max();
  Clock* clock = &Clock::Real();  // of the deadline
};

// Devices for all claims at once on a node, or nullopt: there is no solution. Pointers are valid as long as the plans and
// `pools`. kTimeout: the deadline came first. kInvalid, in upstream's words: a selector fails on a device.
Result<std::optional<Allocation>> Allocate(const NodeFacts& node, const std::vector<ClaimPlan>& claims,
                                           const std::vector<const Pool*>& pools, const DeviceUses& uses,
                                           const SearchLimits& limits = {});

// Why there is no solution, for people: for each request, how many of the node's devices are ruled out by what.
std::string Explain(const NodeFacts& node, const std::vector<ClaimPlan>& claims,
                    const std::vector<const Pool*>& pools, const DeviceUses& uses);

}  // namespace keelson::scheduler
