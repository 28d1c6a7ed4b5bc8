// How much of a device's capacity a request takes (KEP-5075, consumable capacity). Pure.
#pragma once

#include <optional>

#include "controlplane/scheduler/devices/uses.h"

namespace keelson::scheduler {

// What one allocation of the device takes of each of its capacities: what is requested, rounded up as the capacity's
// requestPolicy says; its default, or all of it, where nothing is requested. `request` may be null. nullopt: the device cannot
// serve the request. It lacks a requested capacity, the policy refuses the amount, or less than that is left beside
// `consumed`.
std::optional<Capacity> TakeCapacity(const resourcev1::Device& device,
                                     const resourcev1::CapacityRequirements* request,
                                     const Capacity& consumed);

}  // namespace keelson::scheduler
