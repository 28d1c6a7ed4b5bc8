// Chooses the exclusive CPUs of a container. Pure.
#pragma once

#include "kubelet/cm/topology/machine_topology.h"

namespace keelson::kubelet {

struct CpuAssignOptions {
  bool spread_cores = false;     // distribute-cpus-across-cores: no whole cores, one CPU of each in turn
  bool distribute_numa = false;  // distribute-cpus-across-numa: evenly where one node does not suffice
  bool align_cache = false;      // prefer-align-cpus-by-uncorecache
  bool whole_cores = false;      // full-pcpus-only: NUMA nodes are given whole cores
};

// Chooses `count` of the `available` CPUs, as near to each other as possible: whole NUMA nodes and sockets first,
// then whole cores, then single CPUs of the cores, nodes and sockets that have the fewest left. An error if there
// are not enough.
Result<CpuSet> AssignCpus(const MachineTopology& machine, const CpuSet& available, int count,
                          const CpuAssignOptions& options);

}  // namespace keelson::kubelet
