// One decision: the best node for a pod in a snapshot. No I/O; of the scheduling thread.
//
// Results of filters and scores are kept for each distinct pod signature and node, and used again while the
// node's generation is the same: of a ReplicaSet's pods, every one after the first only costs the nodes that
// have changed since.
#pragma once

#include <list>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "controlplane/scheduler/framework.h"

namespace keelson::scheduler {

// Why no node is right.
struct Diagnosis {
  size_t node_count = 0;
  std::map<uint16_t, size_t> reasons;         // how many nodes each rules out
  std::vector<std::string_view> rejected_by;  // plugins, by name
  std::string prefilter, postfilter;          // what those say

  // "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) were unschedulable."
  std::string Message(const Reasons& reasons) const;
};

struct Decision {
  std::string_view node;  // in the snapshot; empty: see the diagnosis
  size_t evaluated = 0, feasible = 0;
  Diagnosis diagnosis;
};

class Algorithm {
 public:
  // `percentage` as in Options::percentage_of_nodes_to_score.
  Algorithm(const Framework& framework, int percentage, uint64_t seed);
  Decision Schedule(CycleState& state, const PodInfo& pod, const Snapshot& snapshot);

  // How many feasible nodes are enough.
  static size_t EnoughNodes(size_t nodes, int percentage);

 private:
  static constexpr size_t kMaxScores = 4;
  struct Cached {
    uint64_t generation = 0;
    uint32_t epoch = 0;
    Verdict verdict;
    uint8_t plugin = 0;  // which filter said no
    bool scored = false;
    std::array<int32_t, kMaxScores> scores;
  };
  struct Memory {
    std::string signature;
    uint32_t epoch = 0;         // results of another epoch are of another signature
    std::vector<Cached> nodes;  // by slot
  };

  Memory& MemoryOf(const PodInfo& pod, size_t slots);
  const Cached& Evaluate(const CycleState& state, const PodInfo& pod, const NodeInfo& node, uint32_t epoch,
                         Cached& cached);
  // Slots of feasible nodes.
  void FindFeasible(const CycleState& state, const PodInfo& pod, const Snapshot& snapshot,
                    const std::vector<std::string_view>* only, Memory& memory, Decision& decision);
  void Visit(const CycleState& state, const PodInfo& pod, const Snapshot& snapshot, size_t slot,
             Memory& memory, Decision& decision);
  size_t Best(const CycleState& state, const PodInfo& pod, const Snapshot& snapshot, Memory& memory);

  const Framework& framework_;
  const int percentage_;
  std::mt19937_64 random_;
  size_t next_start_ = 0;       // nodes take turns
  std::list<Memory> memories_;  // latest first
  uint32_t epoch_ = 0;
  std::unordered_map<std::string_view, std::list<Memory>::iterator> by_signature_;
  // Scratch of one call.
  std::vector<size_t> feasible_;
  std::vector<int64_t> totals_, column_;
  uint32_t rejected_ = 0;
  std::vector<uint32_t> reason_counts_;
};

}  // namespace keelson::scheduler
