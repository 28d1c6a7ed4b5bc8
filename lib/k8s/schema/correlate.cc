#include "lib/k8s/schema/correlate.h"

#include "lib/api/apply/typed.h"
#include "lib/k8s/schema/go_print.h"

namespace keelson::k8s {

namespace json = boost::json;

Correlation Correlator::Member(const Correlation& of, std::string_view name) const {
  if (!of.old || of.node == kNoNode || !of.old->is_object()) return {};
  const json::value* old = of.old->get_object().if_contains(json::string_view(name.data(), name.size()));
  const NodeIndex node = old ? nodes_.Member(nodes_.nodes[of.node], name) : kNoNode;
  return node == kNoNode ? Correlation() : Correlation{old, node};
}

std::string Correlator::KeyOf(const SchemaNode& list, const json::value& item) const {
  const json::object* object = item.if_object();
  if (!object) return "";
  std::string key;
  for (uint32_t i = 0; i < list.map_keys.size; ++i) {
    const std::string_view name = nodes_.Name(list.map_keys, i);
    const json::value* value = object->if_contains(json::string_view(name.data(), name.size()));
    if (!value || value->is_structured()) return "";
    key += SortedJson(*value);
    key += '\n';
  }
  return key;
}

Correlation Correlator::Item(const Correlation& of, const json::value& value) {
  if (!of.old || of.node == kNoNode || !of.old->is_array()) return {};
  const SchemaNode& node = nodes_.nodes[of.node];
  if (node.list_type != SchemaListType::kMap || node.items == kNoNode) return {};
  auto [it, added] = lists_.try_emplace(of.old);
  if (added) {
    for (const json::value& item : of.old->get_array()) {
      std::string key = KeyOf(node, item);
      if (!key.empty()) it->second.try_emplace(std::move(key), &item);
    }
  }
  const std::string key = KeyOf(node, value);
  const auto found = key.empty() ? it->second.end() : it->second.find(key);
  return found == it->second.end() ? Correlation() : Correlation{found->second, node.items};
}

bool Correlator::IsUnchanged(const Correlation& part, const json::value& value) {
  if (!part.old) return false;
  const json::value& old = *part.old;
  if (value.is_object() && old.is_object()) {
    const json::object& object = value.get_object();
    if (object.size() != old.get_object().size()) return false;
    for (const auto& member : object) {
      if (!IsUnchanged(Member(part, View(member.key())), member.value())) return false;
    }
    return true;
  }
  if (!value.is_array() || !old.is_array()) return api::SameJson(old, value);
  const json::array& list = value.get_array();
  if (list.size() != old.get_array().size()) return false;
  if (part.node == kNoNode || nodes_.nodes[part.node].list_type != SchemaListType::kMap) {
    return api::SameJson(old, value);
  }
  for (const json::value& item : list) {
    if (!IsUnchanged(Item(part, item), item)) return false;
  }
  return true;
}

}  // namespace keelson::k8s
