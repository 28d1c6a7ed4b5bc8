// Sets and map lists hold no item, or key, twice.
#include <unordered_map>

#include "lib/k8s/schema/go_print.h"
#include "lib/k8s/schema/nodes.h"
#include "lib/k8s/schema/place.h"
#include "lib/k8s/schema/structural_schema.h"

namespace keelson::k8s {

namespace {

namespace json = boost::json;

class ListChecker {
 public:
  ListChecker(const SchemaNodes& nodes, FieldErrors& errors) : nodes_(nodes), errors_(errors) {}

  void Check(const SchemaNode& node, const json::value& value, const Place& place) {
    if (!node.Is(SchemaNode::kListsBelow)) return;
    if (const json::array* list = value.if_array()) {
      CheckList(node, *list, place);
    } else if (const json::object* object = value.if_object()) {
      for (const auto& member : *object) {
        const std::string_view name = View(member.key());
        const NodeIndex named = nodes_.Property(node, name);
        if (named != kNoNode) {
          Check(nodes_.nodes[named], member.value(), place.Child(name));
        } else if (node.additional != kNoNode) {
          Check(nodes_.nodes[node.additional], member.value(), place.Key(name));
        }
      }
    }
  }

 private:
  void CheckList(const SchemaNode& node, const json::array& list, const Place& place) {
    if (node.list_type == SchemaListType::kSet) {
      CheckUnique(list, place);
    } else if (node.list_type == SchemaListType::kMap) {
      CheckMapList(node, list, place);
    }
    if (node.items == kNoNode) return;
    for (size_t i = 0; i < list.size(); ++i) Check(nodes_.nodes[node.items], list[i], place.Index(i));
  }

  void CheckMapList(const SchemaNode& node, const json::array& list, const Place& place) {
    for (size_t i = 0; i < list.size(); ++i) {
      if (list[i].is_object() || list[i].is_null()) continue;
      Add(FieldError::Type::kInvalid, place.Index(i), list[i],
          "must be an object for an array of list-type map");
      return;
    }
    json::array keys;
    keys.reserve(list.size());
    for (const json::value& item : list) {
      json::object key;
      for (uint32_t k = 0; k < node.map_keys.size && item.is_object(); ++k) {
        const std::string_view name = nodes_.Name(node.map_keys, k);
        const json::string_view member(name.data(), name.size());
        if (const json::value* found = item.get_object().if_contains(member)) key.emplace(member, *found);
      }
      keys.emplace_back(std::move(key));
    }
    CheckUnique(keys, place);
  }

  // An item that is there more than once has one error, at its second place.
  void CheckUnique(const json::array& items, const Place& place) {
    if (items.size() < 2) return;
    std::unordered_map<std::string, int> seen;
    for (size_t i = 0; i < items.size(); ++i) {
      // 1 and 1.0 are different values in Go.
      std::string text = (items[i].is_double() ? "f" : "") + SortedJson(items[i]);
      if (++seen[std::move(text)] == 2) Add(FieldError::Type::kDuplicate, place.Index(i), items[i], "");
    }
  }

  void Add(FieldError::Type type, const Place& place, const json::value& value, std::string_view detail) {
    errors_.push_back({type, place.ToField(), PrintBadValue(value), std::string(detail)});
  }

  const SchemaNodes& nodes_;
  FieldErrors& errors_;
};

}  // namespace

FieldErrors ValidateListTypes(const StructuralSchema& schema, const json::value& object,
                              const json::value* old) {
  const SchemaNodes& nodes = schema.nodes();
  FieldErrors errors;
  if (old) {
    ListChecker(nodes, errors).Check(nodes.root_node(), *old, Place());
    if (!errors.empty()) return {};
  }
  ListChecker(nodes, errors).Check(nodes.root_node(), object, Place());
  return errors;
}

}  // namespace keelson::k8s
