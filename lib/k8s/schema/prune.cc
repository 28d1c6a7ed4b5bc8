// Removal of unknown fields, and of nulls.
#include <algorithm>

#include <fmt/format.h>

#include "lib/k8s/schema/nodes.h"
#include "lib/k8s/schema/place.h"
#include "lib/k8s/schema/structural_schema.h"

namespace keelson::k8s {

namespace {

namespace json = boost::json;

// Removes members; those that stay keep their order.
template <typename Predicate>
void RemoveMembers(json::object& object, const Predicate& unwanted) {
  if (std::none_of(object.begin(), object.end(), unwanted)) return;
  json::object kept(object.storage());
  kept.reserve(object.size());
  for (auto& member : object) {
    if (!unwanted(member)) kept.emplace(member.key(), std::move(member.value()));
  }
  object = std::move(kept);
}

class Pruner {
 public:
  Pruner(const SchemaNodes& nodes, std::vector<std::string>* unknown) : nodes_(nodes), unknown_(unknown) {}

  // `node`: null where the schema says nothing.
  void Prune(const SchemaNode* node, bool embedded, json::value& value, const Place& place) {
    const bool keep = node && node->Is(SchemaNode::kPreserve);
    if (json::array* list = value.if_array()) {
      PruneList(node, keep, *list, place);
    } else if (json::object* object = value.if_object()) {
      PruneObject(node, keep, embedded, *object, place);
    }
  }

 private:
  void PruneList(const SchemaNode* node, bool keep, json::array& list, const Place& place) {
    const SchemaNode* items = node ? Find(node->items) : nullptr;
    if (keep && !items) return;
    for (size_t i = 0; i < list.size(); ++i) {
      if (keep) {
        Keep(*items, list[i], place.Index(i));
      } else {
        Prune(items, items && items->Is(SchemaNode::kEmbedded), list[i], place.Index(i));
      }
    }
  }

  // Below a part that keeps unknown fields, items of its lists keep theirs too; members with a schema do not.
  void Keep(const SchemaNode& node, json::value& value, const Place& place) {
    if (json::array* list = value.if_array()) {
      PruneList(&node, true, *list, place);
    } else if (json::object* object = value.if_object()) {
      PruneObject(&node, true, node.Is(SchemaNode::kEmbedded), *object, place);
    }
  }

  void PruneObject(const SchemaNode* node, bool keep, bool embedded, json::object& object,
                   const Place& place) {
    bool has_unknown = false;
    for (auto& member : object) {
      const std::string_view name = View(member.key());
      if (embedded && IsMetaField(name)) continue;
      if (!IsKnown(node, name)) {
        if (keep) continue;
        has_unknown = true;
        if (unknown_) unknown_->push_back(place.Child(name).ToString());
        continue;
      }
      const SchemaNode* below = Find(nodes_.Member(*node, name));
      Prune(below, below && below->Is(SchemaNode::kEmbedded), member.value(), place.Child(name));
    }
    if (!has_unknown) return;
    RemoveMembers(object, [&](const auto& member) {
      const std::string_view name = View(member.key());
      return !(embedded && IsMetaField(name)) && !IsKnown(node, name);
    });
  }

  bool IsKnown(const SchemaNode* node, std::string_view name) const {
    return node && (node->Is(SchemaNode::kAdditional) || nodes_.Property(*node, name) != kNoNode);
  }

  const SchemaNode* Find(NodeIndex index) const { return index == kNoNode ? nullptr : &nodes_.nodes[index]; }

  const SchemaNodes& nodes_;
  std::vector<std::string>* const unknown_;
};

class NullPruner {
 public:
  explicit NullPruner(const SchemaNodes& nodes) : nodes_(nodes) {}

  void Prune(const SchemaNode& node, json::value& value) {
    if (json::array* list = value.if_array()) {
      if (node.items == kNoNode) return;
      for (json::value& item : *list) Prune(nodes_.nodes[node.items], item);
    } else if (json::object* object = value.if_object()) {
      RemoveMembers(*object, [&](const auto& member) {
        return member.value().is_null() && IsUnwanted(nodes_.Member(node, View(member.key())));
      });
      for (auto& member : *object) {
        const NodeIndex below = nodes_.Member(node, View(member.key()));
        if (below != kNoNode) Prune(nodes_.nodes[below], member.value());
      }
    }
  }

 private:
  bool IsUnwanted(NodeIndex index) const {
    if (index == kNoNode) return false;
    const SchemaNode& node = nodes_.nodes[index];
    return !node.Is(SchemaNode::kNullable) && node.default_value == kNothing;
  }

  const SchemaNodes& nodes_;
};

}  // namespace

void PruneValue(const SchemaNodes& nodes, const SchemaNode& node, json::value& value) {
  Pruner(nodes, nullptr).Prune(&node, node.Is(SchemaNode::kEmbedded), value, Place());
}

std::vector<std::string> PruneObject(const StructuralSchema& schema, json::value& object) {
  std::vector<std::string> unknown;
  Pruner(schema.nodes(), &unknown).Prune(&schema.nodes().root_node(), true, object, Place());
  std::sort(unknown.begin(), unknown.end());
  return unknown;
}

void PruneNulls(const StructuralSchema& schema, json::value& object) {
  NullPruner(schema.nodes()).Prune(schema.nodes().root_node(), object);
}

}  // namespace keelson::k8s
