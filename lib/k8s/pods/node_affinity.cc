#include "lib/k8s/pods/node_affinity.h"

#include <algorithm>
#include <charconv>

namespace keelson::k8s {

namespace {

bool ParseNumber(std::string_view text, int64_t& number) {
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, number);
  return !text.empty() && parsed.ec == std::errc() && parsed.ptr == end;
}

bool Contains(const std::vector<std::string>& values, std::string_view value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

std::vector<NodeTerm> ParseTerms(const corev1::NodeSelector& selector) {
  std::vector<NodeTerm> terms;
  for (const corev1::NodeSelectorTerm& term : selector.node_selector_terms()) terms.emplace_back(term);
  return terms;
}

bool MatchesAny(const std::vector<NodeTerm>& terms, const NodeView& node) {
  return std::any_of(terms.begin(), terms.end(), [&](const NodeTerm& term) { return term.Matches(node); });
}

}  // namespace

LabelSet::LabelSet(const google::protobuf::Map<std::string, std::string>& labels) {
  labels_.reserve(labels.size());
  for (const auto& [key, value] : labels) labels_.emplace_back(key, value);
  std::sort(labels_.begin(), labels_.end());
}

const std::string* LabelSet::Find(std::string_view key) const {
  const auto it = std::lower_bound(labels_.begin(), labels_.end(), key,
                                   [](const auto& label, std::string_view k) { return label.first < k; });
  return it != labels_.end() && it->first == key ? &it->second : nullptr;
}

NodeTerm::NodeTerm(const corev1::NodeSelectorTerm& term) {
  for (const auto& requirement : term.match_expressions()) requirements_.push_back(Parse(requirement, false));
  for (const auto& requirement : term.match_fields()) requirements_.push_back(Parse(requirement, true));
}

NodeTerm::Requirement NodeTerm::Parse(const corev1::NodeSelectorRequirement& source, bool field) {
  Requirement out;
  out.key = source.key();
  out.values.assign(source.values().begin(), source.values().end());
  out.field = field;
  const std::string& op = source.operator_();
  const bool one = out.values.size() == 1;
  if (field) {
    // Field requirements only support metadata.name, with one name.
    if (source.key() != "metadata.name" || !one) return out;
    if (op == "In") out.op = Op::kIn;
    if (op == "NotIn") out.op = Op::kNotIn;
    return out;
  }
  if (op == "In" && !out.values.empty()) out.op = Op::kIn;
  if (op == "NotIn" && !out.values.empty()) out.op = Op::kNotIn;
  if (op == "Exists" && out.values.empty()) out.op = Op::kExists;
  if (op == "DoesNotExist" && out.values.empty()) out.op = Op::kDoesNotExist;
  if ((op == "Gt" || op == "Lt") && one && ParseNumber(out.values[0], out.number)) {
    out.op = op == "Gt" ? Op::kGt : Op::kLt;
  }
  return out;
}

bool NodeTerm::Matches(const NodeView& node) const {
  return !requirements_.empty() &&
         std::all_of(requirements_.begin(), requirements_.end(),
                     [&](const Requirement& requirement) { return Matches(requirement, node); });
}

bool NodeTerm::Matches(const Requirement& requirement, const NodeView& node) const {
  if (requirement.field) {
    if (requirement.op == Op::kIn) return requirement.values[0] == node.name;
    return requirement.op == Op::kNotIn && requirement.values[0] != node.name;
  }
  const std::string* value = node.labels.Find(requirement.key);
  int64_t number = 0;
  switch (requirement.op) {
    case Op::kIn:
      return value && Contains(requirement.values, *value);
    case Op::kNotIn:
      return !value || !Contains(requirement.values, *value);
    case Op::kExists:
      return value;
    case Op::kDoesNotExist:
      return !value;
    case Op::kGt:
      return value && ParseNumber(*value, number) && number > requirement.number;
    case Op::kLt:
      return value && ParseNumber(*value, number) && number < requirement.number;
    case Op::kNever:
      return false;
  }
  return false;
}

std::vector<std::string_view> NodeTerm::Names() const {
  for (const Requirement& requirement : requirements_) {
    if (requirement.field && requirement.op == Op::kIn) return {requirement.values[0]};
  }
  return {};
}

RequiredNodeAffinity::RequiredNodeAffinity(const corev1::PodSpec& spec) {
  for (const auto& [key, value] : spec.node_selector()) selector_.emplace_back(key, value);
  const corev1::NodeAffinity& affinity = spec.affinity().node_affinity();
  if (affinity.has_required_during_scheduling_ignored_during_execution()) {
    terms_ = ParseTerms(affinity.required_during_scheduling_ignored_during_execution());
  }
}

bool RequiredNodeAffinity::Matches(const NodeView& node) const {
  for (const auto& [key, value] : selector_) {
    const std::string* have = node.labels.Find(key);
    if (!have || *have != value) return false;
  }
  return !terms_ || MatchesAny(*terms_, node);
}

std::optional<std::vector<std::string_view>> RequiredNodeAffinity::Names() const {
  if (!terms_) return std::nullopt;
  std::vector<std::string_view> names;
  for (const NodeTerm& term : *terms_) {
    const std::vector<std::string_view> of_term = term.Names();
    if (of_term.empty()) return std::nullopt;
    names.insert(names.end(), of_term.begin(), of_term.end());
  }
  return names;
}

bool MatchesNodeSelector(const corev1::NodeSelector& selector, const corev1::Node& node) {
  const LabelSet labels(node.metadata().labels());
  return MatchesAny(ParseTerms(selector), {node.metadata().name(), labels});
}

bool MatchesNodeAffinity(const corev1::PodSpec& spec, const corev1::Node& node) {
  const LabelSet labels(node.metadata().labels());
  return RequiredNodeAffinity(spec).Matches({node.metadata().name(), labels});
}

}  // namespace keelson::k8s
