// Node selection: spec.nodeSelector and node affinity of pods.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <google/protobuf/map.h>

#include "lib/api/types.h"

namespace keelson::k8s {

// Labels in one array, sorted by key: compact, and quick to search.
class LabelSet {
 public:
  LabelSet() = default;
  explicit LabelSet(const google::protobuf::Map<std::string, std::string>& labels);
  const std::string* Find(std::string_view key) const;  // null when absent
  bool operator==(const LabelSet& other) const { return labels_ == other.labels_; }
  const std::vector<std::pair<std::string, std::string>>& items() const { return labels_; }

 private:
  std::vector<std::pair<std::string, std::string>> labels_;
};

struct NodeView {
  std::string_view name;
  const LabelSet& labels;
};

// A node selector term, parsed for quick matching. All requirements must hold. A term without requirements,
// or with an invalid one, matches nothing.
class NodeTerm {
 public:
  explicit NodeTerm(const corev1::NodeSelectorTerm& term);
  bool Matches(const NodeView& node) const;
  // The node names that the term is limited to (metadata.name In [name]); empty: the term does not name a
  // node.
  std::vector<std::string_view> Names() const;

 private:
  enum class Op { kIn, kNotIn, kExists, kDoesNotExist, kGt, kLt, kNever };
  struct Requirement {
    std::string key;
    Op op = Op::kNever;
    std::vector<std::string> values;
    int64_t number = 0;
    bool field = false;  // of metadata.name, not of a label
  };
  static Requirement Parse(const corev1::NodeSelectorRequirement& source, bool field);
  bool Matches(const Requirement& requirement, const NodeView& node) const;
  std::vector<Requirement> requirements_;
};

// The node selector and required node affinity of a pod.
class RequiredNodeAffinity {
 public:
  explicit RequiredNodeAffinity(const corev1::PodSpec& spec);
  bool Matches(const NodeView& node) const;
  bool IsEverything() const { return selector_.empty() && !terms_; }
  // The only nodes that any term can match (daemon pods name one); nullopt: any node may match.
  std::optional<std::vector<std::string_view>> Names() const;

 private:
  std::vector<std::pair<std::string, std::string>> selector_;
  std::optional<std::vector<NodeTerm>> terms_;  // any of them must match
};

bool MatchesNodeSelector(const corev1::NodeSelector& selector, const corev1::Node& node);
bool MatchesNodeAffinity(const corev1::PodSpec& spec, const corev1::Node& node);

}  // namespace keelson::k8s
