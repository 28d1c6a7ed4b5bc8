// Structural schemas in server-side apply's view.
#include <algorithm>
#include <map>

#include "lib/api/proto/meta_v1.pb.h"
#include "lib/k8s/schema/go_print.h"
#include "lib/k8s/schema/nodes.h"
#include "lib/k8s/schema/structural_schema.h"

namespace keelson::k8s {

namespace {

using api::Shape;

class ShapeBuilder {
 public:
  ShapeBuilder(const SchemaNodes& nodes, std::deque<Shape>& shapes) : nodes_(nodes), shapes_(shapes) {}

  // The first shape is that of the object.
  void Build() {
    Shape& root = shapes_.emplace_back();
    const SchemaNode& node = nodes_.root_node();
    const bool preserve = node.Is(SchemaNode::kPreserve);
    FillMap(node, preserve, true, root);
  }

 private:
  // `preserve`: a part above keeps unknown fields.
  const Shape* Get(NodeIndex index, bool preserve) {
    const SchemaNode& node = nodes_.nodes[index];
    preserve = preserve || node.Is(SchemaNode::kPreserve);
    auto [it, added] = made_.try_emplace({index, preserve});
    if (!added) return it->second;
    Shape& shape = shapes_.emplace_back();
    it->second = &shape;
    switch (node.type) {
      case SchemaType::kString: {
        const bool untyped = node.format.size > 0 && nodes_.Text(node.format) == "byte";
        shape.kind = Shape::Kind::kScalar;
        shape.scalar = untyped ? Shape::Scalar::kAny : Shape::Scalar::kString;
        break;
      }
      case SchemaType::kInteger:
      case SchemaType::kNumber:
        shape.kind = Shape::Kind::kScalar;
        shape.scalar = Shape::Scalar::kNumber;
        break;
      case SchemaType::kBoolean:
        shape.kind = Shape::Kind::kScalar;
        shape.scalar = Shape::Scalar::kBool;
        break;
      case SchemaType::kArray:
        FillList(node, preserve, shape);
        break;
      case SchemaType::kObject:
        FillMap(node, preserve, node.Is(SchemaNode::kEmbedded), shape);
        break;
      case SchemaType::kAny:
      case SchemaType::kIntOrString:
        FillMap(node, preserve, node.Is(SchemaNode::kEmbedded), shape);
        shape.deduced = true;
        break;
    }
    return &shape;
  }

  void FillList(const SchemaNode& node, bool preserve, Shape& shape) {
    shape.kind = Shape::Kind::kList;
    shape.set = node.list_type == SchemaListType::kSet;
    shape.atomic = !shape.set && node.list_type != SchemaListType::kMap;
    shape.element = node.items == kNoNode ? Deduced() : Get(node.items, preserve);
    if (node.list_type != SchemaListType::kMap) return;
    for (uint32_t i = 0; i < node.map_keys.size; ++i) {
      const std::string_view name = nodes_.Name(node.map_keys, i);
      shape.keys.push_back({name, DefaultOf(node.items, name)});
    }
    std::sort(shape.keys.begin(), shape.keys.end(),
              [](const Shape::Key& a, const Shape::Key& b) { return a.name < b.name; });
  }

  // The default of a property, as JSON; empty without one.
  std::string DefaultOf(NodeIndex index, std::string_view name) const {
    const NodeIndex property = index == kNoNode ? kNoNode : nodes_.Property(nodes_.nodes[index], name);
    if (property == kNoNode) return "";
    const uint32_t value = nodes_.nodes[property].default_value;
    return value == kNothing ? "" : SortedJson(nodes_.values[value]);
  }

  // `is_object`: a Kubernetes object, at the root or embedded.
  void FillMap(const SchemaNode& node, bool preserve, bool is_object, Shape& shape) {
    shape.kind = Shape::Kind::kMap;
    shape.atomic = node.Is(SchemaNode::kMapAtomic);
    for (uint32_t i = 0; i < node.properties.size; ++i) {
      const SchemaProperty& property = nodes_.properties[node.properties.begin + i];
      const std::string_view name = nodes_.Text(property.name);
      if (!is_object || !IsMetaField(name)) shape.fields.push_back({name, Get(property.node, preserve)});
    }
    if (is_object) {
      shape.fields.push_back({"apiVersion", Text()});
      shape.fields.push_back({"kind", Text()});
      shape.fields.push_back({"metadata", &api::ShapeOf(api::meta::v1::ObjectMeta::descriptor())});
    }
    std::sort(shape.fields.begin(), shape.fields.end(),
              [](const Shape::Field& a, const Shape::Field& b) { return a.name < b.name; });
    if (node.additional != kNoNode) {
      shape.element = Get(node.additional, preserve);
    } else if (node.Is(SchemaNode::kAdditional) ? !node.Is(SchemaNode::kAdditionalForbidden)
                                                : preserve || shape.fields.empty()) {
      shape.element = Deduced();
    }
  }

  // Objects without a schema are merged field by field, lists without one as a whole.
  const Shape* Deduced() {
    if (!deduced_) {
      deduced_ = &shapes_.emplace_back();
      deduced_->kind = Shape::Kind::kMap;
      deduced_->deduced = true;
      deduced_->element = deduced_;
    }
    return deduced_;
  }

  const Shape* Text() {
    if (!text_) {
      text_ = &shapes_.emplace_back();
      text_->kind = Shape::Kind::kScalar;
      text_->scalar = Shape::Scalar::kString;
    }
    return text_;
  }

  const SchemaNodes& nodes_;
  std::deque<Shape>& shapes_;  // keeps the places of its elements
  std::map<std::pair<NodeIndex, bool>, const Shape*> made_;
  Shape* deduced_ = nullptr;
  Shape* text_ = nullptr;
};

}  // namespace

const Shape& StructuralSchema::shape() const {
  std::call_once(nodes_->shape_once, [&] { ShapeBuilder(*nodes_, nodes_->shapes).Build(); });
  return nodes_->shapes.front();
}

}  // namespace keelson::k8s
