// Nodes and the pods on them at one moment, as the scheduling thread sees them. Changes are replayed from the
// cache's log, so that bringing it up to date costs what has changed, and whoever counts pods by topology
// follows along by the same changes (placements).
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "controlplane/scheduler/types/node_info.h"

namespace keelson::scheduler {

// One step from a snapshot to the next.
struct Change {
  enum class Kind { kFacts, kFree, kAddPod, kRemovePod, kReplacePod, kNominate, kUnnominate, kNamespace };
  Kind kind;
  uint32_t slot = 0;
  std::shared_ptr<const NodeFacts> facts;  // kFacts; null: the node has gone
  PodPtr pod;
  std::string ns;                               // kNamespace
  std::shared_ptr<const api::LabelMap> labels;  // kNamespace; null: it has gone
};

// A label of nodes as a column: which domain each slot is in. 0: the node has no such label. A number stays
// the domain's for ever.
struct TopologyColumn {
  uint32_t key;
  std::string label;
  std::vector<uint32_t> domain;  // by slot
  std::unordered_map<std::string, uint32_t> ids;
  size_t domains() const { return ids.size() + 1; }  // and the absent one
};

// Pods of one class, by where they are.
struct ClassPlacement {
  std::shared_ptr<const PodClass> pod_class;
  std::unordered_map<uint32_t, int32_t> by_slot;
};

struct Placement {
  std::shared_ptr<const PodClass> pod_class;
  uint32_t slot;
  int32_t by;  // +1, -1
};

class Snapshot {
 public:
  explicit Snapshot(Vocabulary& words) : words_(words) {}

  // A node keeps its slot while it exists; slots of nodes that have gone have no facts.
  std::vector<NodeInfo> nodes;
  std::unordered_map<std::string, size_t> slots;  // by name, of nodes with facts
  size_t count() const { return slots.size(); }
  const NodeInfo* Find(std::string_view name) const;

  void Apply(const Change& change);

  // Grows with every change of which nodes there are, or of their labels and taints.
  uint64_t places_epoch() const { return places_epoch_; }
  // Grows with every change of which images nodes have, or of the number of nodes.
  uint64_t images_epoch() const { return images_epoch_; }
  size_t NodesWithImage(const std::string& image) const;
  uint64_t namespaces_epoch() const { return namespaces_epoch_; }
  const NamespaceLabels& namespaces() const { return namespaces_; }

  // Columns are made on first demand and live as long as the snapshot.
  const TopologyColumn& Column(uint32_t key) const;

  // Placements since the beginning of time that are still remembered: those from log_begin() on.
  uint64_t log_begin() const { return log_begin_; }
  uint64_t log_end() const { return log_begin_ + log_.size(); }
  const Placement& At(uint64_t index) const { return log_[index - log_begin_]; }
  using ClassMap = std::unordered_map<uint64_t, ClassPlacement>;
  const ClassMap* ClassesIn(const std::string& ns) const;
  const std::unordered_map<std::string, ClassMap>& classes() const { return classes_; }
  // Of pods that have wishes about other pods.
  const std::unordered_map<uint64_t, const ClassPlacement*>& classes_with_terms() const {
    return with_terms_;
  }

  // How many pods on nodes use a claim, by "namespace/name".
  int32_t ClaimUsers(const std::string& claim) const;

  // Nodes that somebody is nominated for, and how many of the nominated want to be apart from others there.
  size_t nominated_nodes() const { return nominated_nodes_; }
  size_t nominated_apart() const { return nominated_apart_; }

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
  size_t nominated_nodes_ = 0, nominated_apart_ = 0;
};

}  // namespace keelson::scheduler
