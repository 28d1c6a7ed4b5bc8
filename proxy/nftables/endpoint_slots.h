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

// `now` (sorted) in an order that keeps as many slots of `before` as it can, without empty ones.
std::vector<Backend> AssignSlots(const std::vector<Backend>& before, const std::vector<Backend>& now);

// The same with session affinity, where clients stay with slots: endpoints that stay keep their slots, new
// ones fill empty slots. When most slots are empty, all endpoints move.
std::vector<Backend> AssignAffinitySlots(const std::vector<Backend>& before, const std::vector<Backend>& now);

inline bool IsEmptySlot(const Backend& b) { return b.port == 0; }

}  // namespace keelson::proxy::nftables
