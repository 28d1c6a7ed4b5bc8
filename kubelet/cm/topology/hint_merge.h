// Merges the topology hints of the resource managers into one NUMA affinity (KEP-693). Pure.
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

// Looks at all combinations of one hint per resource whose node sets intersect. Preferred ones win, then those with
// the fewest nodes. If none is preferred, the set wins whose size is nearest to what the most demanding resource
// needs.
MergedHint MergeHints(const std::vector<TopologyHints>& providers, const MachineTopology& machine,
                      const MergeOptions& options);

}  // namespace keelson::kubelet
