// One scheduling decision: the best node for a pod in a snapshot. No I/O.
//
// The answers of local filters and scores are kept by pod shape and node, and used again while the node's
// generation is the same: of a ReplicaSet's pods, each one after the first costs only the nodes that have
// changed. Filters and scores that depend on other pods are called for each node and read counts that their
// plugins keep.
#pragma once

#include <list>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "controlplane/scheduler/framework/framework.h"

namespace keelson::scheduler {

// Why no node fits a pod.
struct FitError {
  size_t num_all_nodes = 0;
  std::map<uint16_t, size_t> reasons;  // by Reasons number: how many nodes have it
  std::vector<std::string_view>
      unschedulable_plugins;  // names of the plugins that rejected a node or the pod
  std::string pre_filter_message, post_filter_message;

  // "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) were unschedulable."
  std::string Message(const Reasons& reasons) const;
};

struct ScheduleResult {
  std::string_view suggested_host;  // a name in the snapshot; empty: see fit_error, or error
  size_t evaluated_nodes = 0, feasible_nodes = 0;
  FitError fit_error;
  std::optional<std::string> nominated_node_name;  // see PostFilterResult
  std::string error;                               // not empty: the attempt failed and is to be repeated
};

// The scheduler extenders, as the algorithm sees them (see extender.h). Scheduling thread only; calls block.
class Extenders {
 public:
  virtual ~Extenders() = default;
  // Whether any extender filters or scores nodes for the pod.
  virtual bool IsInterested(const PodInfo& pod) const = 0;
  struct FailedNode {
    uint32_t slot;
    std::string reason;
    bool resolvable;  // false: one of FailedAndUnresolvableNodes
  };
  // Removes from `slots` the nodes that extenders reject, and appends these to `failed_nodes`. An error ends
  // the attempt.
  virtual Result<> Filter(const PodInfo& pod, const Snapshot& snapshot, std::vector<uint32_t>& slots,
                          std::vector<FailedNode>& failed_nodes) = 0;
  // Adds the extenders' weighted scores to `totals`, which is parallel to `slots`.
  virtual void Prioritize(const PodInfo& pod, const Snapshot& snapshot, const std::vector<uint32_t>& slots,
                          std::vector<int64_t>& totals) = 0;
};

struct AlgorithmOptions {
  // The search ends when this share of the nodes is feasible; 0: a share that shrinks as the cluster grows.
  int percentage_of_nodes_to_score = 0;
  uint64_t seed = 0;  // of tie-breaks; 0: random
  Extenders* extenders = nullptr;
};

// Not thread safe: the scheduling thread owns it.
class Algorithm {
 public:
  // `framework` and `reasons` outlive this.
  Algorithm(const Framework& framework, Reasons& reasons, AlgorithmOptions options);

  // Runs PreFilter to Score, and PostFilter when no node fits. `nominated_node`: the node that the pod is
  // nominated for, or ""; it is tried first. Nodes of `snapshot` are changed meanwhile, and are as before in
  // the end.
  ScheduleResult SchedulePod(CycleState& state, const PodPtr& pod, Snapshot& snapshot,
                             std::string_view nominated_node = "");

  // How many feasible nodes end the search, given a percentageOfNodesToScore (0: adaptive).
  static size_t NumFeasibleNodesToFind(size_t nodes, int percentage);

  // What every node answers for a pod.
  struct Diagnosis {
    struct Node {
      std::string_view name;
      std::string_view plugin;           // the one that rejects the node; empty: feasible
      std::vector<std::string> reasons;  // texts
      std::string details;               // see FilterPlugin::Details
      std::vector<std::pair<std::string_view, int64_t>> scores;  // weighted, by plugin
      int64_t total_score = 0;
    };
    PluginStatus pre_filter;  // not ok: no node was filtered
    std::vector<Node> nodes;  // feasible ones first, the best of them first
  };
  // Filters and scores every node as SchedulePod() would, without an early end, kept answers and PostFilter.
  // Names live as long as the snapshot.
  Diagnosis Diagnose(CycleState& state, const PodPtr& pod, Snapshot& snapshot);

 private:
  class NodeToStatus;
  // The answers for the pods of one shape, by slot. Those of a slot hold while `filtered` or `scored` equals
  // the node's generation.
  struct EquivalenceCache {
    uint64_t shape = 0;
    uint64_t epoch = 0;  // of the scores
    std::vector<uint64_t> filtered, scored;
    std::vector<uint16_t> filter_result;       // of the local filters; see filter_results_
    std::vector<std::vector<int32_t>> scores;  // of the local score plugins
  };
  struct FilterResult {
    FilterStatus status;
    uint8_t filter;  // the one that gave it
  };

  EquivalenceCache& EquivalenceCacheOf(const PodShape& shape, const Snapshot& snapshot);
  uint16_t Intern(const FilterStatus& status, size_t filter);
  // These return an index into filter_results_. `cache` may be null.
  uint16_t EvaluateLocal(const CycleState& state, const PodInfo& pod, const NodeInfo& node,
                         EquivalenceCache* cache);
  uint16_t EvaluateWithNominatedPods(CycleState& state, const PodInfo& pod, NodeInfo& node,
                                     EquivalenceCache* cache);
  uint16_t Evaluate(CycleState& state, const PodInfo& pod, NodeInfo& node, EquivalenceCache* cache);
  void FilterNode(CycleState& state, const PodInfo& pod, NodeInfo& node, EquivalenceCache* cache,
                  ScheduleResult& result);
  // Fills feasible_ and rejected_.
  void FindNodesThatPassFilters(CycleState& state, const PodInfo& pod, Snapshot& snapshot,
                                const std::vector<std::string_view>* node_names, EquivalenceCache* cache,
                                ScheduleResult& result);
  void FillFitError(const std::vector<std::string_view>& plugins_with_nodes, ScheduleResult& result);
  bool FindNodesThatPassExtenders(const PodInfo& pod, const Snapshot& snapshot, ScheduleResult& result);
  void RunPreScorePlugins(CycleState& state, const PodInfo& pod, const Snapshot& snapshot);
  // Fills plugin_scores_ with the normalized scores of one plugin, parallel to feasible_.
  void RunScorePlugin(const CycleState& state, const PodInfo& pod, const Snapshot& snapshot, size_t score,
                      EquivalenceCache* cache);
  // Fills totals_, parallel to feasible_.
  void PrioritizeNodes(CycleState& state, const PodInfo& pod, const Snapshot& snapshot,
                       EquivalenceCache* cache);
  // One of the feasible nodes with the highest total, each with the same chance.
  uint32_t SelectHost();
  void RunPostFilterPlugins(CycleState& state, const PodPtr& pod, Snapshot& snapshot, ScheduleResult& result);

  const Framework& framework_;
  Reasons& reasons_;
  const AlgorithmOptions options_;
  std::mt19937_64 random_;
  size_t local_filters_ = 0;                        // the filters before the first that is not local
  size_t next_start_node_index_ = 0;                // the slot where the next search starts
  std::list<EquivalenceCache> equivalence_caches_;  // latest first
  std::unordered_map<uint64_t, std::list<EquivalenceCache>::iterator> by_shape_;
  std::vector<FilterResult> filter_results_;  // interned; [0]: success
  // Scratch of one call.
  bool run_nonlocal_filters_ = false;  // not all filters behind the local ones are skipped
  std::vector<uint32_t> feasible_;
  std::vector<std::pair<uint32_t, uint16_t>> rejected_;  // slot, index into filter_results_
  std::vector<int64_t> totals_, plugin_scores_;
  std::vector<uint32_t> filter_result_counts_;
};

}  // namespace keelson::scheduler
