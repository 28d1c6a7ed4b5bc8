// Topology hints: which zones and nodes use which endpoints. Pure functions.
//
// spec.trafficDistribution assigns each ready endpoint to its own zone (PreferSameZone, PreferClose) or to
// its node and zone (PreferSameNode). The annotation service.kubernetes.io/topology-mode: Auto takes
// precedence: each zone gets endpoints in proportion to its share of the nodes' CPUs. If a zone would get
// less than five sixths of its share, no endpoint gets hints.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lib/api/types.h"

namespace keelson::controllers {

enum class HintMode { kNone, kSameZone, kSameNode, kTopology };
HintMode HintModeOf(const corev1::Service& service);

// The share of CPUs in each zone. Empty when a node lacks a zone label or CPU capacity, or with fewer than
// two zones.
using ZoneShares = std::map<std::string, double>;
ZoneShares SharesOf(const std::vector<std::shared_ptr<const corev1::Node>>& nodes);
// The fields of a node that SharesOf() uses, for change detection.
std::string ShareKeyOf(const corev1::Node& node);

// Sets hints on all endpoints of a Service in one address family. Returns why kTopology could not set hints;
// empty otherwise.
std::string SetHints(HintMode mode, const ZoneShares& shares,
                     const std::vector<discoveryv1::Endpoint*>& endpoints);

}  // namespace keelson::controllers
