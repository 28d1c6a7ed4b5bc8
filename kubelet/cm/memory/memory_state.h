// What memory of which NUMA nodes is promised to whom, and what is left. Pure, but for its file.
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
  bool passing = false;  // of an init container, which has ended when the others run
  bool operator==(const MemoryGrant&) const = default;
};

struct MemoryGrants {
  std::map<std::string, std::map<std::string, MemoryGrant>> pods;  // UID -> container
  bool operator==(const MemoryGrants&) const = default;
};

// Nodes that are granted together form a group; a node is in one group at a time, so that what is left of a
// group can be told at all.
class MemoryTable {
 public:
  // `allocatable`: of each node, what is not reserved.
  MemoryTable(std::map<int, MemoryAmounts> allocatable, const MemoryGrants& grants);

  // Whether `wanted` could ever be met, resp. can be met now, by just these nodes.
  bool LargeEnough(const NumaMask& nodes, const MemoryAmounts& wanted) const;
  bool Fits(const NumaMask& nodes, const MemoryAmounts& wanted) const;

 private:
  bool Allowed(const NumaMask& nodes) const;
  int64_t Total(const NumaMask& nodes, const std::string& type) const;

  const std::map<int, MemoryAmounts> allocatable_;
  std::map<unsigned long long, MemoryAmounts> used_;  // by group
};

// An absent file has no grants. kInvalid: no such file.
Result<MemoryGrants> LoadMemoryGrants(const std::string& path);
Result<> SaveMemoryGrants(const std::string& path, const MemoryGrants& grants);

}  // namespace keelson::kubelet
