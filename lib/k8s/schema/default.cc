// Defaults of custom resources.
#include "lib/k8s/schema/nodes.h"
#include "lib/k8s/schema/structural_schema.h"

namespace keelson::k8s {

namespace {

namespace json = boost::json;

class Defaulter {
 public:
  explicit Defaulter(const SchemaNodes& nodes) : nodes_(nodes) {}

  void Default(const SchemaNode& node, json::value& value) {
    if (!node.Is(SchemaNode::kDefaultsBelow)) return;
    if (json::object* object = value.if_object()) {
      DefaultMembers(node, *object);
    } else if (json::array* list = value.if_array(); list && node.items != kNoNode) {
      for (json::value& item : *list) DefaultPart(nodes_.nodes[node.items], item);
    }
  }

 private:
  void DefaultMembers(const SchemaNode& node, json::object& object) {
    for (uint32_t i = 0; i < node.properties.size; ++i) {
      const SchemaProperty& property = nodes_.properties[node.properties.begin + i];
      const SchemaNode& below = nodes_.nodes[property.node];
      if (below.default_value == kNothing) continue;
      const std::string_view name = nodes_.Text(property.name);
      const json::string_view key(name.data(), name.size());
      if (!object.contains(key)) object.emplace(key, nodes_.values[below.default_value]);
    }
    for (auto& member : object) {
      const NodeIndex below = nodes_.Member(node, View(member.key()));
      if (below != kNoNode) DefaultPart(nodes_.nodes[below], member.value());
    }
  }

  // A null that is not nullable becomes the default.
  void DefaultPart(const SchemaNode& node, json::value& value) {
    if (value.is_null() && !node.Is(SchemaNode::kNullable) && node.default_value != kNothing) {
      value = nodes_.values[node.default_value];
    }
    Default(node, value);
  }

  const SchemaNodes& nodes_;
};

}  // namespace

void DefaultObject(const StructuralSchema& schema, json::value& object) {
  Defaulter(schema.nodes()).Default(schema.nodes().root_node(), object);
}

}  // namespace keelson::k8s
