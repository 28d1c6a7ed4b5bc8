// Options of the node's components, from settings and the machine.
#pragma once

#include "kubelet/cm/cgroups/pod_cgroups.h"
#include "kubelet/config/settings.h"
#include "kubelet/container/node_context.h"
#include "kubelet/eviction/thresholds.h"
#include "kubelet/node/node_status.h"

namespace keelson::kubelet {

// Pure, except that it may ask the resolver for the node's address, and block.
NodeOptions MakeNodeOptions(const Settings& settings, const std::string& runtime);
// Whether enforceNodeAllocatable contains `level`: "pods", "system-reserved", ...
bool Enforces(const KubeletConfig& config, const std::string& level);
Reservations MakeReservations(const Settings& settings, const Machine& machine);
NodeContext MakeNodeContext(const Settings& settings, const NodeOptions& node, const Machine& machine,
                            bool cgroup_v2);
CgroupOptions MakeCgroupOptions(const Settings& settings, const Machine& machine);
EvictionOptions MakeEvictionOptions(const KubeletConfig& config);
// kInvalid: labels that a node may not set on itself (--node-labels).
Result<> CheckNodeLabels(const StringMap& labels);

}  // namespace keelson::kubelet
