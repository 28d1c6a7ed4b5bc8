#include "lib/k8s/validation/extension/embedded.h"

#include <algorithm>

#include <fmt/format.h>
#include <boost/json/serialize.hpp>

#include "lib/api/codec/codec.h"
#include "lib/base/text.h"
#include "lib/k8s/schema/go_print.h"
#include "lib/k8s/schema/nodes.h"
#include "lib/k8s/validation/internal.h"

namespace keelson::k8s {

namespace {

namespace json = boost::json;
using Type = FieldError::Type;

class EmbeddedChecker {
 public:
  EmbeddedChecker(const SchemaNodes& nodes, FieldErrors& errors) : nodes_(nodes), errors_(errors) {}

  void Check(NodeIndex index, bool is_object, const json::value& value, const std::string& place) {
    const SchemaNode& node = nodes_.nodes[index];
    if (!is_object && !node.Is(SchemaNode::kEmbeddedBelow)) return;
    if (const json::array* list = value.if_array()) {
      if (node.items == kNoNode) return;
      for (size_t i = 0; i < list->size(); ++i) {
        Check(node.items, IsEmbedded(node.items), (*list)[i], fmt::format("{}[{}]", place, i));
      }
      return;
    }
    const json::object* object = value.if_object();
    if (!object) return;
    if (is_object) CheckObject(*object, place);
    for (const auto& member : *object) {
      const std::string_view name = View(member.key());
      const NodeIndex named = nodes_.Property(node, name), below = named == kNoNode ? node.additional : named;
      if (below == kNoNode) continue;
      Check(below, IsEmbedded(below), member.value(),
            named == kNoNode ? fmt::format("{}[{}]", place, name) : Below(place, name));
    }
  }

 private:
  bool IsEmbedded(NodeIndex index) const { return nodes_.nodes[index].Is(SchemaNode::kEmbedded); }

  static std::string Below(const std::string& place, std::string_view name) {
    return place.empty() ? std::string(name) : fmt::format("{}.{}", place, name);
  }

  void Add(Type type, std::string place, std::string value, std::string detail) {
    errors_.push_back({type, std::move(place), std::move(value), std::move(detail)});
  }

  // The text of a member; null, with an error, when there is none.
  const json::string* TextOf(const json::object& object, const char* name, const std::string& place) {
    const json::value* value = object.if_contains(name);
    if (!value) {
      Add(Type::kRequired, Below(place, name), "", "must not be empty");
      return nullptr;
    }
    const json::string* text = value->if_string();
    if (!text) {
      Add(Type::kInvalid, Below(place, name), PrintBadValue(*value), "must be a string");
    } else if (text->empty()) {
      Add(Type::kInvalid, Below(place, name), "\"\"", "must not be empty");
      return nullptr;
    }
    return text;
  }

  void CheckObject(const json::object& object, const std::string& place) {
    if (const json::string* version = TextOf(object, "apiVersion", place)) {
      const std::string_view text = View(*version);
      if (std::count(text.begin(), text.end(), '/') > 1) {
        Add(Type::kInvalid, Below(place, "apiVersion"), Quote(text),
            fmt::format("unexpected GroupVersion string: {}", text));
      }
    }
    if (const json::string* kind = TextOf(object, "kind", place)) {
      const Problems problems = CheckDns1035Label(Lower(View(*kind)));
      if (!problems.empty()) {
        Add(Type::kInvalid, Below(place, "kind"), Quote(View(*kind)),
            "may have mixed case, but should otherwise match: " + Join(problems, ","));
      }
    }
    if (const json::value* metadata = object.if_contains("metadata")) {
      CheckMetadata(*metadata, Below(place, "metadata"));
    }
  }

  void CheckMetadata(const json::value& metadata, const std::string& place) {
    metav1::ObjectMeta meta;
    if (Result<> decoded = api::DecodeJson(json::serialize(metadata), meta); !decoded) {
      return Add(Type::kInvalid, place, PrintBadValue(metadata), decoded.error().message());
    }
    if (meta.name().empty()) meta.set_name("fakename");  // it may be missing
    CheckObjectMeta(meta, {.namespaced = !meta.namespace_().empty(), .name = CheckPathSegmentName},
                    Path(place), errors_);
  }

  const SchemaNodes& nodes_;
  FieldErrors& errors_;
};

}  // namespace

FieldErrors ValidateEmbeddedObjects(const StructuralSchema& schema, const json::value& object) {
  return ValidateEmbeddedPart(schema.nodes(), schema.nodes().root, false, object, "");
}

FieldErrors ValidateEmbeddedPart(const SchemaNodes& nodes, NodeIndex node, bool is_object,
                                 const json::value& value, const std::string& place) {
  FieldErrors errors;
  EmbeddedChecker(nodes, errors).Check(node, is_object, value, place);
  return errors;
}

}  // namespace keelson::k8s
