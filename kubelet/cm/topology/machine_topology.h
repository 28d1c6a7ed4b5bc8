// The machine's CPUs and memory by socket, NUMA node, core and shared cache, from sysfs
// (Documentation/admin-guide/cputopology.rst, Documentation/ABI/stable/sysfs-devices-node).
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "kubelet/cm/topology/cpu_set.h"
#include "kubelet/cm/topology/provider.h"

namespace keelson::kubelet {

struct CpuPlace {
  int socket = 0, numa = 0;
  int core = 0;   // unique on the machine: the lowest CPU of the core
  int cache = 0;  // CPUs with the same number share the last-level cache
};

struct NumaNode {
  CpuSet cpus;
  int64_t memory_bytes = 0;
  std::map<std::string, int64_t> huge_pages;  // "hugepages-2Mi" -> bytes
  std::map<int, int> distance;                // to other nodes; 10 is here
};

struct MachineTopology {         // a value
  std::map<int, CpuPlace> cpus;  // online ones
  std::map<int, NumaNode> nodes;

  // Reads `root`, which tests replace. A machine without NUMA directories has one node, 0,
  // whose memory is `memory_bytes`.
  static Result<MachineTopology> Read(int64_t memory_bytes, const std::string& root = "/sys/devices/system");

  CpuSet All() const;
  int Sockets() const;
  int Cores() const;
  int CpusPerCore() const { return Cores() ? static_cast<int>(cpus.size()) / Cores() : 0; }
  int CpusPerSocket() const { return Sockets() ? static_cast<int>(cpus.size()) / Sockets() : 0; }
  CpuSet Of(int CpuPlace::*level, int id) const;  // Of(&CpuPlace::core, 3)
  std::set<int> Ids(int CpuPlace::*level, const CpuSet& among) const;
  CpuSet OfNodes(const NumaMask& mask) const;
  // All non-empty sets of NUMA nodes, smaller ones first.
  std::vector<NumaMask> NodeSets() const;
};

}  // namespace keelson::kubelet
