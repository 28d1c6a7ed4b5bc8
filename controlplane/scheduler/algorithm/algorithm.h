// One decision: the best node for a pod in a snapshot. No I/O; of the scheduling thread.
//
// What local filters and scores say is kept for each pod shape and node, and used again while the node's
// generation is the same: of a ReplicaSet's pods, every one after the first only costs the nodes that
// have changed since. What depends on other pods is asked of each node, from counts that plugins keep.
#pragma once

#include <list>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "controlplane/scheduler/framework/framework.h"

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
  std::string_view node;  // in the snapshot; empty: see the diagnosis, or the error
  size_t evaluated = 0, feasible = 0;
  Diagnosis diagnosis;
  std::optional<std::string> nominate;  // as PostFilter says; see there
  std::string error;                    // not the pod's fault: try again
};

// Processes of others that have a say (see extender.h).
class Extenders {
 public:
  virtual ~Extenders() = default;
  virtual bool Interested(const PodInfo& pod) const = 0;
  // Takes from `slots` what they refuse. `refused`: why, a slot each.
  struct Refusal {
    uint32_t slot;
    std::string reason;
    bool resolvable;
  };
  virtual Result<> Filter(const PodInfo& pod, const Snapshot& snapshot, std::vector<uint32_t>& slots,
                          std::vector<Refusal>& refused) = 0;
  // Adds to `totals`, one of each slot.
  virtual void Prioritize(const PodInfo& pod, const Snapshot& snapshot, const std::vector<uint32_t>& slots,
                          std::vector<int64_t>& totals) = 0;
};

struct AlgorithmOptions {
  // Share of the nodes to find feasible before scoring; 0: less the larger the cluster.
  int percentage = 0;
  uint64_t seed = 0;  // of tie-breaks; 0: random
  Extenders* extenders = nullptr;
};

class Algorithm {
 public:
  Algorithm(const Framework& framework, Reasons& reasons, AlgorithmOptions options);
  // `nominated`: node that the pod has been promised, or "".
  Decision Schedule(CycleState& state, const PodPtr& pod, Snapshot& snapshot,
                    std::string_view nominated = "");

  // How many feasible nodes are enough.
  static size_t EnoughNodes(size_t nodes, int percentage);

  // What Schedule() finds, node by node, without early stop, turns and memory.
  struct Account {
    struct Node {
      std::string_view name;
      std::string_view refused_by;       // plugin; empty: feasible
      std::vector<std::string> reasons;  // in words
      std::string numbers;
      std::vector<std::pair<std::string_view, int64_t>> scores;  // weighted, by plugin
      int64_t total = 0;
    };
    Judgement prefilter;  // not ok: no node was asked
    std::vector<Node> nodes;
  };
  Account Explain(CycleState& state, const PodPtr& pod, Snapshot& snapshot);

 private:
  class Verdicts;
  // What is known of a shape's pods, by slot. A row is true while generation is that of the node.
  struct Memory {
    uint64_t shape = 0;
    uint64_t epoch = 0;  // of the scores
    std::vector<uint64_t> generation, scored;
    std::vector<uint16_t> verdict;             // of the local filters; see verdicts_
    std::vector<std::vector<int32_t>> scores;  // of the local ones
  };
  struct Refusal {
    Verdict verdict;
    uint8_t filter;
  };

  Memory& MemoryOf(const PodShape& shape, const Snapshot& snapshot);
  uint16_t Intern(const Verdict& verdict, size_t filter);
  uint16_t EvaluateLocal(const CycleState& state, const PodInfo& pod, const NodeInfo& node, Memory* memory);
  uint16_t EvaluateBeside(CycleState& state, const PodInfo& pod, NodeInfo& node, Memory* memory);
  uint16_t Evaluate(CycleState& state, const PodInfo& pod, NodeInfo& node, Memory* memory);
  void Visit(CycleState& state, const PodInfo& pod, NodeInfo& node, Memory* memory, Decision& decision);
  void FindFeasible(CycleState& state, const PodInfo& pod, Snapshot& snapshot,
                    const std::vector<std::string_view>* only, Memory* memory, Decision& decision);
  void Diagnose(const std::vector<std::string_view>& narrowed_by, Decision& decision);
  bool AskExtenders(const PodInfo& pod, const Snapshot& snapshot, Decision& decision);
  void PreScore(CycleState& state, const PodInfo& pod, const Snapshot& snapshot);
  void ScoreColumn(const CycleState& state, const PodInfo& pod, const Snapshot& snapshot, size_t score,
                   Memory* memory);
  uint32_t Best(CycleState& state, const PodInfo& pod, const Snapshot& snapshot, Memory* memory);
  void PostFilter(CycleState& state, const PodPtr& pod, Snapshot& snapshot, Decision& decision);

  const Framework& framework_;
  Reasons& reasons_;
  const AlgorithmOptions options_;
  std::mt19937_64 random_;
  size_t local_filters_ = 0;    // the first ones, up to the first that looks beyond its node
  size_t next_start_ = 0;       // nodes take turns
  std::list<Memory> memories_;  // latest first
  std::unordered_map<uint64_t, std::list<Memory>::iterator> by_shape_;
  std::vector<Refusal> verdicts_;  // 0: fits
  // Scratch of one call.
  bool rest_ = false;  // filters beyond the local ones have something to say
  std::vector<uint32_t> feasible_;
  std::vector<std::pair<uint32_t, uint16_t>> refused_;  // slot, verdict
  std::vector<int64_t> totals_, column_;
  std::vector<uint32_t> verdict_counts_;
};

}  // namespace keelson::scheduler
