// Which NUMA nodes a container gets, out of what each manager of a resource could do. Pure (KEP-693).
#pragma once

#include <vector>

#include "kubelet/cm/topology/machine_topology.h"
#include "kubelet/cm/topology/provider.h"

namespace keelson::kubelet {

enum class TopologyPolicy { kNone, kBestEffort, kRestricted, kSingleNumaNode };

struct MergeOptions {
  TopologyPolicy policy = TopologyPolicy::kNone;
  bool prefer_closest = false;  // among sets of as many nodes, the one with the smallest mean distance
};

struct MergedHint {
  TopologyHint hint;
  bool admit = true;
};

// One combination of a hint a resource is looked for whose sets of nodes have something in common: preferred
// before not preferred, then the narrowest. Where no combination is preferred, the set nearest in size to
// what the most demanding resource needs.
MergedHint MergeHints(const std::vector<TopologyHints>& providers, const MachineTopology& machine,
                      const MergeOptions& options);

}  // namespace keelson::kubelet
