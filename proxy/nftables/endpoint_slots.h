// Assigns endpoints to slots, so that few entries of the kernel's maps change.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "proxy/model/service_port.h"

namespace keelson::proxy::nftables {

// The endpoints of a Service port by slot: of policy Cluster, and of policy Local. Port 0: an empty slot.
struct EndpointSlots {
  std::vector<Backend> cluster, local;
};
using EndpointSlotsByPort = std::map<std::string, EndpointSlots>;

// Returns `now` (sorted) in an order that keeps as many slots of `before` as possible, without empty slots.
std::vector<Backend> AssignSlots(const std::vector<Backend>& before, const std::vector<Backend>& now);

// The same with session affinity, which binds clients to slots: remaining endpoints keep their slots, and new ones
// fill empty slots. When most slots are empty, all endpoints move.
std::vector<Backend> AssignAffinitySlots(const std::vector<Backend>& before, const std::vector<Backend>& now);

inline bool IsEmptySlot(const Backend& b) { return b.port == 0; }

}  // namespace keelson::proxy::nftables
