// Which memory of which NUMA nodes is allocated, what is left, and the checkpoint memory_manager_state.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "kubelet/cm/topology/machine_topology.h"

namespace keelson::kubelet {

using MemoryAmounts = std::map<std::string, int64_t>;  // "memory", "hugepages-2Mi" -> bytes

struct MemoryGrant {
  NumaMask nodes;
  MemoryAmounts amounts;
  bool passing = false;  // of an init container, which has ended before app containers run
  bool operator==(const MemoryGrant&) const = default;
};

struct MemoryGrants {
  std::map<std::string, std::map<std::string, MemoryGrant>> pods;  // UID -> container
  bool operator==(const MemoryGrants&) const = default;
};

// What is left, by group of NUMA nodes. Nodes that are allocated together form a group; a node is in one group at
// a time, so that what is left of a group is well defined.
class MemoryTable {
 public:
  // `allocatable`: by NUMA node, what is not reserved.
  MemoryTable(std::map<int, MemoryAmounts> allocatable, const MemoryGrants& grants);

  // Whether exactly these nodes could meet `wanted` if nothing were allocated (LargeEnough), or can now (Fits).
  bool LargeEnough(const NumaMask& nodes, const MemoryAmounts& wanted) const;
  bool Fits(const NumaMask& nodes, const MemoryAmounts& wanted) const;

 private:
  bool Allowed(const NumaMask& nodes) const;
  int64_t Total(const NumaMask& nodes, const std::string& type) const;

  const std::map<int, MemoryAmounts> allocatable_;
  std::map<unsigned long long, MemoryAmounts> used_;  // by group
};

// No grants if there is no file. kInvalid: the file is malformed.
Result<MemoryGrants> LoadMemoryGrants(const std::string& path);
// Replaces the file.
Result<> SaveMemoryGrants(const std::string& path, const MemoryGrants& grants);

}  // namespace keelson::kubelet
