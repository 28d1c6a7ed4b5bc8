#include "lib/k8s/expressions/open_api_types.h"

#include <algorithm>

#include <fmt/format.h>
#include <boost/json/monotonic_resource.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>

#include "lib/cel/syntax/escaping.h"

namespace keelson::k8s {

namespace {

namespace json = boost::json;
using cel::DeclField;
using cel::DeclForm;
using cel::DeclType;
using cel::DeclTypePtr;

// Nests no deeper than schemas of custom resources may.
constexpr size_t kDeepestDocument = 400;
constexpr std::string_view kReference = "#/components/schemas/";

const json::object* ObjectAt(const json::object& in, std::string_view name) {
  const json::value* value = in.if_contains(json::string_view(name.data(), name.size()));
  return value ? value->if_object() : nullptr;
}

std::string_view TextAt(const json::object& in, std::string_view name) {
  const json::value* value = in.if_contains(json::string_view(name.data(), name.size()));
  const json::string* text = value ? value->if_string() : nullptr;
  return text ? std::string_view(text->data(), text->size()) : std::string_view();
}

bool IsSet(const json::object& in, std::string_view name) {
  const json::value* value = in.if_contains(json::string_view(name.data(), name.size()));
  return value && value->is_bool() && value->get_bool();
}

// What the schema refers to, perhaps within allOf, where a description may stand beside it; empty: nothing.
std::string_view ReferenceOf(const json::object& schema) {
  if (const std::string_view direct = TextAt(schema, "$ref"); !direct.empty()) return direct;
  const json::value* all_of = schema.if_contains("allOf");
  if (!all_of || !all_of->is_array()) return {};
  for (const json::value& one : all_of->get_array()) {
    if (!one.is_object()) continue;
    if (const std::string_view found = ReferenceOf(one.get_object()); !found.empty()) return found;
  }
  return {};
}

const DeclField* FieldOf(const std::vector<DeclField>& fields, std::string_view name) {
  const auto found =
      std::find_if(fields.begin(), fields.end(), [&](const DeclField& one) { return one.json_name == name; });
  return found == fields.end() ? nullptr : &*found;
}

bool HasText(const std::vector<DeclField>& fields, std::string_view name) {
  const DeclField* field = FieldOf(fields, name);
  return field && field->type->form() == DeclForm::kString;
}

// Makes the type of one kind.
class TypeMaker {
 public:
  explicit TypeMaker(const json::object& schemas) : schemas_(schemas) {}

  // Null: it cannot be told.
  DeclTypePtr Make(const json::object& root, std::string_view root_name, std::string_view kind) {
    above_.push_back(root_name);
    DeclTypePtr type = OfResolved(root, std::string(kind), true);
    return broken_ ? nullptr : type;
  }

 private:
  DeclTypePtr Of(const json::object& schema, const std::string& name) {
    const std::string_view reference = ReferenceOf(schema);
    if (reference.empty()) {
      return OfResolved(schema, name, IsSet(schema, "x-kubernetes-embedded-resource"));
    }
    const std::string_view target =
        reference.starts_with(kReference) ? reference.substr(kReference.size()) : std::string_view();
    if (std::find(above_.begin(), above_.end(), target) != above_.end()) return DeclType::Object(name, {});
    const json::object* resolved = ObjectAt(schemas_, target);
    if (!resolved) {
      broken_ = true;
      return nullptr;
    }
    above_.push_back(target);
    DeclTypePtr type = OfResolved(*resolved, name, IsSet(*resolved, "x-kubernetes-embedded-resource"));
    above_.pop_back();
    return type;
  }

  // `object`: a Kubernetes object, at the root or embedded.
  DeclTypePtr OfResolved(const json::object& schema, const std::string& name, bool object) {
    if (broken_ || ++parts_ > kMostTypeParts) {
      broken_ = true;
      return nullptr;
    }
    // Built-in types have the format, custom resources the extension.
    const std::string_view format = TextAt(schema, "format");
    if (format == "int-or-string" || IsSet(schema, "x-kubernetes-int-or-string")) {
      return DeclType::IntOrString();
    }
    const std::string_view type = TextAt(schema, "type");
    if (type == "boolean") return DeclType::Bool();
    if (type == "integer") return DeclType::Int();
    if (type == "number") return DeclType::Double();
    if (type == "string") return OfString(format);
    if (type == "array") {
      const json::object* items = ObjectAt(schema, "items");
      DeclTypePtr item = items ? Of(*items, name + ".@idx") : nullptr;
      return item ? DeclType::List(std::move(item)) : nullptr;
    }
    return type == "object" ? OfObject(schema, name, object) : nullptr;
  }

  static DeclTypePtr OfString(std::string_view format) {
    if (format == "byte") return DeclType::Bytes();
    if (format == "duration") return DeclType::Duration();
    if (format == "date") return DeclType::Date();
    if (format == "date-time") return DeclType::DateTime();
    return DeclType::String();
  }

  DeclTypePtr OfObject(const json::object& schema, const std::string& name, bool object) {
    if (const json::object* values = ObjectAt(schema, "additionalProperties")) {
      DeclTypePtr value = Of(*values, name + ".@elem");
      return value ? DeclType::Map(std::move(value)) : nullptr;
    }
    std::vector<DeclField> fields;
    if (const json::object* properties = ObjectAt(schema, "properties")) {
      for (const auto& [key, below] : *properties) {
        const std::string json_name(key.data(), key.size());
        const auto escaped = cel::EscapeFieldName(json_name);
        if (!escaped || !below.is_object()) continue;
        DeclTypePtr type = Of(below.get_object(), name + "." + *escaped);
        if (type) fields.push_back({json_name, *escaped, std::move(type)});
      }
    }
    if (object) AddMeta(name, fields);
    return DeclType::Object(name, std::move(fields));
  }

  // Every object has these, whether or not its schema says so.
  static void AddMeta(const std::string& name, std::vector<DeclField>& fields) {
    const DeclField* metadata = FieldOf(fields, "metadata");
    if (HasText(fields, "kind") && HasText(fields, "apiVersion") && metadata &&
        metadata->type->form() == DeclForm::kObject && HasText(metadata->type->fields(), "name") &&
        HasText(metadata->type->fields(), "generateName")) {
      return;
    }
    std::erase_if(fields, [](const DeclField& field) {
      return field.json_name == "kind" || field.json_name == "apiVersion" || field.json_name == "metadata";
    });
    fields.push_back({"kind", "kind", DeclType::String()});
    fields.push_back({"apiVersion", "apiVersion", DeclType::String()});
    fields.push_back(
        {"metadata", "metadata",
         DeclType::Object(name + ".metadata", {{"name", "name", DeclType::String()},
                                               {"generateName", "generateName", DeclType::String()}})});
  }

  const json::object& schemas_;
  std::vector<std::string_view> above_;  // names of the schemas around the present one
  size_t parts_ = 0;
  bool broken_ = false;
};

bool IsOfKind(const json::object& schema, std::string_view group, std::string_view version,
              std::string_view kind) {
  const json::value* kinds = schema.if_contains("x-kubernetes-group-version-kind");
  if (!kinds || !kinds->is_array()) return false;
  const json::array& all = kinds->get_array();
  return std::any_of(all.begin(), all.end(), [&](const json::value& one) {
    const json::object* object = one.if_object();
    return object && TextAt(*object, "group") == group && TextAt(*object, "version") == version &&
           TextAt(*object, "kind") == kind;
  });
}

DeclTypePtr TypeOf(const json::object& schemas, std::string_view group, std::string_view version,
                   std::string_view kind) {
  for (const auto& [key, schema] : schemas) {
    if (!schema.is_object() || !IsOfKind(schema.get_object(), group, version, kind)) continue;
    return TypeMaker(schemas).Make(schema.get_object(), {key.data(), key.size()}, kind);
  }
  return nullptr;
}

}  // namespace

Result<std::vector<DeclTypePtr>> TypesInOpenApi(std::string_view document, std::string_view group,
                                                std::string_view version,
                                                const std::vector<std::string>& kinds) {
  json::parse_options options;
  options.max_depth = kDeepestDocument;
  json::error_code error;
  json::monotonic_resource memory;
  const json::value root =
      json::parse(json::string_view(document.data(), document.size()), error, &memory, options);
  if (error) return Error(Code::kInvalid, fmt::format("OpenAPI document: {}", error.message()));
  const json::object* whole = root.if_object();
  const json::object* components = whole ? ObjectAt(*whole, "components") : nullptr;
  const json::object* schemas = components ? ObjectAt(*components, "schemas") : nullptr;
  std::vector<DeclTypePtr> out(kinds.size());
  if (!schemas) return out;
  for (size_t i = 0; i < kinds.size(); ++i) out[i] = TypeOf(*schemas, group, version, kinds[i]);
  return out;
}

}  // namespace keelson::k8s
