// Which zones and nodes should use which endpoints. Pure functions without I/O.
//
// spec.trafficDistribution gives each ready endpoint to its own zone (PreferSameZone, PreferClose) or node
// and zone (PreferSameNode). The annotation service.kubernetes.io/topology-mode (Auto) outweighs it: zones
// get as many endpoints as they have of the nodes' CPUs, none less than five sixths of that, or nobody gets
// hints.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lib/api/types.h"

namespace keelson::controllers {

enum class HintMode { kNone, kSameZone, kSameNode, kTopology };
HintMode HintModeOf(const corev1::Service& service);

// The part of the CPUs that each zone has; empty when a node does not tell its zone or CPUs, or when there
// are less than two zones.
using ZoneShares = std::map<std::string, double>;
ZoneShares SharesOf(const std::vector<std::shared_ptr<const corev1::Node>>& nodes);
// What SharesOf() looks at.
std::string ShareKeyOf(const corev1::Node& node);

// Of all the endpoints of a Service in one address family. What comes back is why kTopology had to go without
// hints; empty: nothing.
std::string SetHints(HintMode mode, const ZoneShares& shares,
                     const std::vector<discoveryv1::Endpoint*>& endpoints);

}  // namespace keelson::controllers
