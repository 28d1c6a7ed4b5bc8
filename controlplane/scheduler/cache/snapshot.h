// The snapshot: nodes and the pods on them at one moment. It replays the changes from the cache's log, so that
// an update costs what has changed. Those who count pods by topology follow the same changes (placements).
// Not thread safe: the scheduling thread owns it.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "controlplane/scheduler/types/node_info.h"

namespace keelson::scheduler {

// One change of the cache.
struct Change {
  enum class Kind { kFacts, kFree, kAddPod, kRemovePod, kReplacePod, kNominate, kUnnominate, kNamespace };
  Kind kind;
  uint32_t slot = 0;
  std::shared_ptr<const NodeFacts> facts;  // kFacts; null: the node is gone
  PodPtr pod;
  std::string ns;                               // kNamespace
  std::shared_ptr<const api::LabelMap> labels;  // kNamespace; null: it is gone
};

// The topology domains of one node label. Domain 0: the node has no such label. A domain keeps its number.
struct TopologyColumn {
  uint32_t key;
  std::string label;
  std::vector<uint32_t> domain;  // by slot
  std::unordered_map<std::string, uint32_t> ids;
  size_t domains() const { return ids.size() + 1; }  // with domain 0
};

// How many pods of one class are on each node.
struct ClassPlacement {
  std::shared_ptr<const PodClass> pod_class;
  std::unordered_map<uint32_t, int32_t> by_slot;
};

// A pod of a class has come to a node, or left it.
struct Placement {
  std::shared_ptr<const PodClass> pod_class;
  uint32_t slot;
  int32_t by;  // +1, -1
};

class Snapshot {
 public:
  explicit Snapshot(Vocabulary& words) : words_(words) {}

  // By slot. A node keeps its slot while it exists; slots without a node have no facts.
  std::vector<NodeInfo> nodes;
  std::unordered_map<std::string, size_t> slots;  // by name, of nodes with facts
  size_t count() const { return slots.size(); }   // of nodes
  // The node of that name; null: none.
  const NodeInfo* Find(std::string_view name) const;

  void Apply(const Change& change);

  // Epochs grow when what they name changes. Places: the set of nodes, their labels and taints.
  uint64_t places_epoch() const { return places_epoch_; }
  // The images of nodes, or the number of nodes.
  uint64_t images_epoch() const { return images_epoch_; }
  size_t NodesWithImage(const std::string& image) const;
  uint64_t namespaces_epoch() const { return namespaces_epoch_; }
  const NamespaceLabels& namespaces() const { return namespaces_; }

  // The domains of the label with this topology key (see Vocabulary). The reference lives as long as the
  // snapshot.
  const TopologyColumn& Column(uint32_t key) const;

  // The log of placements, numbered from the first ever; those from log_begin() to log_end() are kept.
  uint64_t log_begin() const { return log_begin_; }
  uint64_t log_end() const { return log_begin_ + log_.size(); }
  const Placement& At(uint64_t index) const { return log_[index - log_begin_]; }
  using ClassMap = std::unordered_map<uint64_t, ClassPlacement>;
  const ClassMap* ClassesIn(const std::string& ns) const;
  const std::unordered_map<std::string, ClassMap>& classes() const { return classes_; }
  // The classes whose pods have affinity or anti-affinity terms.
  const std::unordered_map<uint64_t, const ClassPlacement*>& classes_with_terms() const {
    return with_terms_;
  }

  // How many pods on nodes use a claim, by "namespace/name".
  int32_t ClaimUsers(const std::string& claim) const;

  // How many nodes have nominated pods, and how many nominated pods have required anti-affinity.
  size_t nominated_nodes() const { return nominated_nodes_; }
  size_t nominated_with_anti_affinity() const { return nominated_with_anti_affinity_; }

 private:
  void SetFacts(NodeInfo& node, std::shared_ptr<const NodeFacts> facts);
  void CountImages(const NodeFacts& facts, int by);
  void Place(const PodPtr& pod, uint32_t slot, int by);
  void Nominate(NodeInfo& node, const PodPtr& pod);
  void Unnominate(NodeInfo& node, const PodInfo& pod);
  void Touch(NodeInfo& node) { node.generation = ++generation_; }
  void FillColumn(TopologyColumn& column, uint32_t slot) const;

  Vocabulary& words_;
  uint64_t generation_ = 0, places_epoch_ = 1, images_epoch_ = 1, namespaces_epoch_ = 1;
  std::unordered_map<std::string, size_t> images_;
  NamespaceLabels namespaces_;
  mutable std::unordered_map<uint32_t, std::unique_ptr<TopologyColumn>> columns_;
  std::deque<Placement> log_;
  uint64_t log_begin_ = 0;
  std::unordered_map<std::string, ClassMap> classes_;  // by namespace
  std::unordered_map<uint64_t, const ClassPlacement*> with_terms_;
  std::unordered_map<std::string, int32_t> claim_users_;
  size_t nominated_nodes_ = 0, nominated_with_anti_affinity_ = 0;
};

}  // namespace keelson::scheduler
