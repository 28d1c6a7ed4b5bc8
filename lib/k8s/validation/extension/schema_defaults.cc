// Defaults of schemas must be valid themselves.
#include <fmt/format.h>
#include <boost/json/parse.hpp>

#include "lib/api/apply/typed.h"
#include "lib/k8s/schema/go_print.h"
#include "lib/k8s/schema/nodes.h"
#include "lib/k8s/schema/structural_schema.h"
#include "lib/k8s/validation/extension/embedded.h"
#include "lib/k8s/validation/extension/schema.h"

namespace keelson::k8s {

namespace {

namespace json = boost::json;
using Type = FieldError::Type;

// Whether a default in metadata is checked with the object around it: by its place there.
struct Around {
  bool in_meta = false;
  std::vector<std::string> names;  // from the object; "" for an item
};

class DefaultChecker {
 public:
  DefaultChecker(bool must_be_pruned, FieldErrors& errors)
      : must_be_pruned_(must_be_pruned), errors_(errors) {}

  // Defaults below additionalProperties are not looked at, as upstream.
  void Check(const JsonSchema& schema, bool is_object, Around around, const Path& path) {
    if (is_object) around = {};
    if (schema.has_default_()) CheckDefault(schema, around, path.Child("default"));
    if (schema.items().has_schema()) {
      Around below = around;
      below.names.emplace_back();
      const JsonSchema& items = schema.items().schema();
      Check(items, items.x_kubernetes_embedded_resource(), below, path.Child("items"));
    }
    const Path properties = path.Child("properties");
    for (const std::string& name : SortedKeys(schema.properties())) {
      const JsonSchema& property = schema.properties().at(name);
      Around below = around;
      below.names.push_back(name);
      below.in_meta = around.in_meta || (is_object && IsMetaField(name));
      Check(property, property.x_kubernetes_embedded_resource(), below, properties.Key(name));
    }
  }

 private:
  void CheckDefault(const JsonSchema& schema, const Around& around, const Path& path) {
    json::error_code error;
    const json::value value = json::parse(schema.default_().raw(), error);
    if (error || value.is_null()) return;
    const auto compiled = StructuralSchema::Compile(schema);
    if (!compiled) return;
    const SchemaNodes& nodes = (*compiled)->nodes();
    const size_t before = errors_.size();
    if (around.in_meta) {
      CheckInMetadata(value, around, path);
    } else {
      json::value pruned = value;
      PruneValue(nodes, nodes.root_node(), pruned);
      if (must_be_pruned_ && !api::SameJson(pruned, value)) {
        errors_.push_back(
            {Type::kInvalid, path.ToString(), PrintBadValue(value), "must not have unknown fields"});
      }
      const FieldErrors embedded = ValidateEmbeddedPart(
          nodes, nodes.root, schema.x_kubernetes_embedded_resource(), value, path.ToString());
      errors_.insert(errors_.end(), embedded.begin(), embedded.end());
      if (!embedded.empty()) return;
    }
    if (around.in_meta && errors_.size() > before) return;
    for (FieldError& one : ValidateSchema(**compiled, value)) {
      one.field = one.field == "<nil>" ? path.ToString() : path.Child(one.field).ToString();
      errors_.push_back(std::move(one));
    }
  }

  void CheckInMetadata(const json::value& value, const Around& around, const Path& path) {
    json::value object = value;
    for (auto name = around.names.rbegin(); name != around.names.rend(); ++name) {
      if (name->empty()) {
        object = json::array{std::move(object)};
      } else {
        object = json::object{{*name, std::move(object)}};
      }
    }
    json::object& whole = object.get_object();
    if (!whole.contains("apiVersion")) whole.emplace("apiVersion", "validation/v1");
    if (!whole.contains("kind")) whole.emplace("kind", "Validation");
    static const std::shared_ptr<const StructuralSchema> any = [] {
      JsonSchema props;
      props.set_type("object");
      return *StructuralSchema::Compile(props);
    }();
    const FieldErrors found = ValidateEmbeddedPart(any->nodes(), any->nodes().root, true, object, "");
    if (found.empty()) return;
    std::string all = found.size() == 1 ? found[0].ToString() : "[";
    for (size_t i = 0; found.size() > 1 && i < found.size(); ++i) {
      all += (i ? ", " : "") + found[i].ToString();
    }
    if (found.size() > 1) all += "]";
    errors_.push_back(
        {Type::kInvalid, path.ToString(), PrintBadValue(value), "must result in valid metadata: " + all});
  }

  const bool must_be_pruned_;
  FieldErrors& errors_;
};

}  // namespace

void CheckDefaults(const JsonSchema& schema, bool must_be_pruned, const Path& path, FieldErrors& errors) {
  DefaultChecker(must_be_pruned, errors).Check(schema, true, {}, path);
}

}  // namespace keelson::k8s
