#include "csi/controller/model/topology.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "lib/base/json_quote.h"

namespace keelson::csi::controller {
namespace {

using Terms = std::vector<Segments>;

std::string Text(const Segments& segments) {
  std::string out;
  for (const auto& [key, value] : segments) {
    if (!out.empty()) out += ' ';
    out += key;
    out += ':';
    out += value;
  }
  return "map[" + out + "]";
}

std::string Text(const Terms& terms) {
  std::string out;
  for (const Segments& term : terms) out += (out.empty() ? "" : " ") + Text(term);
  return "[" + out + "]";
}

bool IsSubset(const Segments& part, const Segments& whole) {
  return std::includes(whole.begin(), whole.end(), part.begin(), part.end());
}

// nullopt: the node lacks one of the labels.
std::optional<Segments> TopologyOf(const TopologyNode& node, const std::vector<std::string>& keys) {
  Segments out;
  for (const std::string& key : keys) {
    const auto label = node.labels.find(key);
    if (label == node.labels.end()) return std::nullopt;
    out[key] = label->second;
  }
  return out;
}

// Each term of a class allows several values a key: one topology for each combination.
Terms Combinations(const google::protobuf::RepeatedPtrField<corev1::TopologySelectorTerm>& allowed) {
  Terms out;
  for (const auto& term : allowed) {
    Terms terms;
    bool first = true;
    for (const auto& expression : term.match_label_expressions()) {
      Terms next;
      for (const std::string& value : expression.values()) {
        for (const Segments& before : first ? Terms{{}} : terms) {
          Segments& one = next.emplace_back(before);
          one[expression.key()] = value;
        }
      }
      terms = std::move(next);
      first = false;
    }
    out.insert(out.end(), terms.begin(), terms.end());
  }
  return out;
}

// In external-provisioner's order, which decides about spreading: short ones first, then by keys and values.
void SortUnique(Terms& terms) {
  std::sort(terms.begin(), terms.end(), [](const Segments& a, const Segments& b) {
    return a.size() != b.size() ? a.size() < b.size() : a < b;
  });
  terms.erase(std::unique(terms.begin(), terms.end()), terms.end());
}

Terms Rotated(const Terms& terms, size_t first) {
  Terms out(terms.begin() + static_cast<ptrdiff_t>(first), terms.end());
  out.insert(out.end(), terms.begin(), terms.begin() + static_cast<ptrdiff_t>(first));
  return out;
}

void Set(const Terms& terms, google::protobuf::RepeatedPtrField<v1::Topology>& out) {
  for (const Segments& term : terms) {
    auto& segments = *out.Add()->mutable_segments();
    for (const auto& [key, value] : term) segments[key] = value;
  }
}

struct Selected {
  std::vector<std::string> keys;
  Segments topology;
};

Result<Selected> FindSelected(const std::string& name, const std::vector<TopologyNode>& nodes) {
  const auto node = std::find_if(nodes.begin(), nodes.end(), [&](const auto& n) { return n.name == name; });
  if (node == nodes.end() || node->keys.empty()) {
    return Error(Code::kUnavailable, "no topology key found for node " + name);
  }
  std::optional<Segments> topology = TopologyOf(*node, node->keys);
  if (!topology) {
    return Error(
        Code::kUnavailable,
        fmt::format("topology labels from selected node {} does not match topology keys from CSINode [{}]",
                    Text(node->labels), fmt::join(node->keys, " ")));
  }
  return Selected{node->keys, *std::move(topology)};
}

Result<Terms> AllTopologies(std::vector<std::string> keys, const std::vector<TopologyNode>& nodes) {
  if (keys.empty()) {
    // Any node's keys will do, the same one each time.
    const TopologyNode* first = nullptr;
    for (const TopologyNode& node : nodes) {
      if (!node.keys.empty() && (!first || node.name < first->name)) first = &node;
    }
    if (!first) return Error(Code::kUnavailable, "no available topology found");
    keys = first->keys;
  }
  Terms out;
  for (const TopologyNode& node : nodes) {
    if (std::optional<Segments> topology = TopologyOf(node, keys)) out.push_back(*std::move(topology));
  }
  if (out.empty()) {
    return Error(Code::kUnavailable,
                 fmt::format("topologyKeys [{}] were not found on any nodes", fmt::join(keys, " ")));
  }
  return out;
}

Result<Terms> Preferred(const Terms& requisite, const std::string& claim_name,
                        const std::string& selected_node, const Selected& selected, bool strict) {
  if (selected_node.empty()) return Rotated(requisite, SpreadingOffset(claim_name) % requisite.size());
  if (strict) return requisite;
  for (size_t i = 0; i < requisite.size(); ++i) {
    if (IsSubset(requisite[i], selected.topology)) return Rotated(requisite, i);
  }
  return Error(Code::kInvalid,
               fmt::format("topology {} from selected node {} is not in requisite: {}",
                           Text(selected.topology), JsonQuoted(selected_node), Text(requisite)));
}

}  // namespace

Result<std::optional<v1::TopologyRequirement>> RequireTopology(
    const std::string& claim_name,
    const google::protobuf::RepeatedPtrField<corev1::TopologySelectorTerm>& allowed,
    const std::string& selected_node, const std::vector<TopologyNode>& nodes,
    const TopologyOptions& options) {
  Selected selected;
  if (!selected_node.empty()) {
    KEELSON_ASSIGN_OR_RETURN(selected, FindSelected(selected_node, nodes));
  }
  const Terms permitted = Combinations(allowed);
  const bool strict = options.strict && !selected_node.empty();
  Terms requisite;
  if (strict) {
    const bool fits = permitted.empty() ||
                      std::any_of(permitted.begin(), permitted.end(),
                                  [&](const Segments& term) { return IsSubset(term, selected.topology); });
    if (!fits) {
      return Error(Code::kInvalid,
                   fmt::format("selected node '{}' topology '{}' is not in allowed topologies: {}",
                               JsonQuoted(selected_node), Text(selected.topology), Text(permitted)));
    }
    requisite.push_back(selected.topology);
  } else if (!allowed.empty()) {
    requisite = permitted;
  } else if (selected_node.empty() && !options.immediate) {
    return std::optional<v1::TopologyRequirement>();
  } else {
    KEELSON_ASSIGN_OR_RETURN(requisite, AllTopologies(selected.keys, nodes));
  }
  // Only empty terms in the class: the same as no terms.
  if (requisite.empty()) return std::optional<v1::TopologyRequirement>();
  SortUnique(requisite);
  KEELSON_ASSIGN_OR_RETURN(const Terms preferred,
                           Preferred(requisite, claim_name, selected_node, selected, strict));
  v1::TopologyRequirement out;
  Set(requisite, *out.mutable_requisite());
  Set(preferred, *out.mutable_preferred());
  return std::optional(std::move(out));
}

std::optional<corev1::VolumeNodeAffinity> NodeAffinity(
    const google::protobuf::RepeatedPtrField<v1::Topology>& accessible) {
  corev1::VolumeNodeAffinity out;
  for (const v1::Topology& topology : accessible) {
    if (topology.segments().empty()) continue;
    const Segments segments(topology.segments().begin(), topology.segments().end());
    corev1::NodeSelectorTerm& term = *out.mutable_required()->add_node_selector_terms();
    for (const auto& [key, value] : segments) {
      auto& expression = *term.add_match_expressions();
      expression.set_key(key);
      expression.set_operator_("In");
      expression.add_values(value);
    }
  }
  if (!out.has_required()) return std::nullopt;
  return out;
}

bool IsReachable(const corev1::PersistentVolume& volume, const Segments& topology) {
  for (const auto& term : volume.spec().node_affinity().required().node_selector_terms()) {
    bool fits = term.match_expressions_size() > 0 && term.match_fields_size() == 0;
    for (const auto& expression : term.match_expressions()) {
      const auto label = topology.find(expression.key());
      fits = fits && expression.operator_() == "In" && label != topology.end() &&
             std::find(expression.values().begin(), expression.values().end(), label->second) !=
                 expression.values().end();
    }
    if (fits) return true;
  }
  return false;
}

uint32_t SpreadingOffset(const std::string& claim_name) {
  std::string_view hashed = claim_name;
  uint32_t index = 0;
  if (const size_t dash = claim_name.rfind('-'); dash != std::string::npos) {
    const char* end = claim_name.data() + claim_name.size();
    uint32_t number = 0;
    const auto [rest, error] = std::from_chars(claim_name.data() + dash + 1, end, number);
    if (error == std::errc() && rest == end) {
      index = number;
      hashed = hashed.substr(0, dash);
      // CLAIM-SET-NUMBER: all claims of a pod go to one place.
      if (const size_t before = hashed.rfind('-'); before != std::string_view::npos) {
        hashed = hashed.substr(before + 1);
      }
    }
  }
  uint32_t hash = 2166136261U;
  for (const char c : hashed) {
    hash *= 16777619U;
    hash ^= static_cast<unsigned char>(c);
  }
  return hash + index;
}

}  // namespace keelson::csi::controller
