#include "lib/k8s/schema/open_api.h"

#include <algorithm>

#include <fmt/format.h>
#include <boost/json/parse.hpp>

#include "lib/api/codec/codec.h"
#include "lib/base/text.h"
#include "lib/k8s/schema/go_print.h"
#include "lib/k8s/schema/structural_schema.h"

namespace keelson::k8s {

namespace {

namespace json = boost::json;
namespace apiextensionsv1 = api::apiextensions::v1;
using Props = apiextensionsv1::JSONSchemaProps;
using api::OpenApiVersion;

constexpr std::string_view kObjectMeta = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
constexpr std::string_view kListMeta = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta";
constexpr char kApiVersionText[] =
    "APIVersion defines the group and version of the schema that the object is written in.";
constexpr char kKindText[] = "Kind is the name of the object's type in CamelCase; it cannot be changed.";
constexpr char kMetadataText[] = "Standard object's metadata: name, labels, annotations and more.";
constexpr char kListMetadataText[] = "Standard list's metadata: version of the list and how to get the rest.";

json::string Text(std::string_view text) { return json::string(text.data(), text.size()); }

json::object StringSchema(const char* description) {
  return {{"description", description}, {"type", "string"}};
}

// Text beside a reference counts in version 2 only, so version 3 puts the reference into allOf.
json::object Reference(std::string_view name, const char* description, OpenApiVersion version) {
  const bool v3 = version == OpenApiVersion::kV3;
  json::object reference{
      {"$ref", Text((v3 ? "#/components/schemas/" : "#/definitions/") + std::string(name))}};
  if (!description) return reference;
  if (v3) return {{"allOf", json::array{std::move(reference)}}, {"description", description}};
  reference["description"] = description;
  return reference;
}

json::value Raw(const std::string& text) {
  json::parse_options options;
  options.max_depth = kMaxObjectDepth;
  json::error_code error;
  json::value value = json::parse(text, error, {}, options);
  return error ? json::value() : value;
}

template <typename Strings>
json::array List(const Strings& strings) {
  json::array out;
  for (const std::string& one : strings) out.emplace_back(Text(one));
  return out;
}

bool IsIntegerOrString(const google::protobuf::RepeatedPtrField<Props>& any_of) {
  return any_of.size() == 2 && any_of[0].type() == "integer" && any_of[1].type() == "string";
}

class Publisher {
 public:
  explicit Publisher(OpenApiVersion version) : version_(version) {}

  json::object Schema(const Props& props) const {
    json::object out;
    AddValues(props, out);
    AddExtensions(props, out);
    if (IsV2()) {
      AddPartsV2(props, out);
    } else {
      AddParts(props, out);
      AddBranches(props, out);
    }
    const bool keeps = props.x_kubernetes_preserve_unknown_fields();
    if (props.x_kubernetes_embedded_resource() && !(IsV2() && keeps)) AddEmbedded(out);
    return out;
  }

  void AddObjectFields(json::object& schema) const {
    json::object& properties = PropertiesOf(schema);
    properties["apiVersion"] = StringSchema(kApiVersionText);
    properties["kind"] = StringSchema(kKindText);
    properties["metadata"] = Reference(kObjectMeta, kMetadataText, version_);
  }

  static json::object& PropertiesOf(json::object& schema) {
    json::value& properties = schema["properties"];
    if (!properties.is_object()) properties = json::object();
    return properties.get_object();
  }

 private:
  bool IsV2() const { return version_ == OpenApiVersion::kV2; }

  static void AddText(const char* name, const std::string& text, json::object& out) {
    if (!text.empty()) out[name] = Text(text);
  }

  void AddValues(const Props& props, json::object& out) const {
    AddText("description", props.description(), out);
    AddText("title", props.title(), out);
    AddText("format", props.format(), out);
    AddText("pattern", props.pattern(), out);
    if (props.has_default_() && !IsV2()) {
      json::value value = Raw(props.default_().raw());
      if (!value.is_null()) out["default"] = std::move(value);
    }
    if (props.has_maximum()) out["maximum"] = props.maximum();
    if (props.has_minimum()) out["minimum"] = props.minimum();
    if (props.has_multiple_of()) out["multipleOf"] = props.multiple_of();
    if (props.exclusive_maximum()) out["exclusiveMaximum"] = true;
    if (props.exclusive_minimum()) out["exclusiveMinimum"] = true;
    if (props.has_max_length()) out["maxLength"] = props.max_length();
    if (props.has_min_length()) out["minLength"] = props.min_length();
    if (props.has_max_items()) out["maxItems"] = props.max_items();
    if (props.has_min_items()) out["minItems"] = props.min_items();
    if (props.has_max_properties()) out["maxProperties"] = props.max_properties();
    if (props.has_min_properties()) out["minProperties"] = props.min_properties();
    if (props.unique_items()) out["uniqueItems"] = true;
    if (props.enum_().empty()) return;
    json::array& values = out["enum"].emplace_array();
    for (const apiextensionsv1::JSON& one : props.enum_()) values.push_back(Raw(one.raw()));
  }

  static void AddExtensions(const Props& props, json::object& out) {
    if (props.x_kubernetes_preserve_unknown_fields()) out["x-kubernetes-preserve-unknown-fields"] = true;
    if (props.x_kubernetes_embedded_resource()) out["x-kubernetes-embedded-resource"] = true;
    if (props.x_kubernetes_int_or_string()) out["x-kubernetes-int-or-string"] = true;
    if (!props.x_kubernetes_list_map_keys().empty()) {
      out["x-kubernetes-list-map-keys"] = List(props.x_kubernetes_list_map_keys());
    }
    AddText("x-kubernetes-list-type", props.x_kubernetes_list_type(), out);
    AddText("x-kubernetes-map-type", props.x_kubernetes_map_type(), out);
    if (props.x_kubernetes_validations().empty()) return;
    json::array& rules = out["x-kubernetes-validations"].emplace_array();
    for (const auto& rule : props.x_kubernetes_validations()) rules.push_back(Raw(api::EncodeJson(rule)));
  }

  void AddAdditional(const Props& props, json::object& out) const {
    if (!props.has_additional_properties()) return;
    const auto& additional = props.additional_properties();
    if (additional.has_schema()) {
      out["additionalProperties"] = Schema(additional.schema());
    } else {
      out["additionalProperties"] = additional.allows();
    }
  }

  void AddProperties(const Props& props, json::object& out) const {
    if (props.properties().empty()) return;
    json::object& properties = PropertiesOf(out);
    for (const auto& [name, property] : props.properties()) properties[name] = Schema(property);
  }

  void AddParts(const Props& props, json::object& out) const {
    AddText("type", props.type(), out);
    if (props.nullable()) out["nullable"] = true;
    if (!props.required().empty()) out["required"] = List(props.required());
    if (props.items().has_schema()) out["items"] = Schema(props.items().schema());
    AddProperties(props, out);
    AddAdditional(props, out);
  }

  // kubectl takes the members of a schema with properties, and the items of a list, for all that there can be. So
  // parts that allow more have neither.
  void AddPartsV2(const Props& props, json::object& out) const {
    const bool keeps = props.x_kubernetes_preserve_unknown_fields(), open = props.nullable() || keeps;
    const bool has_items = props.items().has_schema() && !open;
    const bool untyped =
        props.nullable() || (props.type() == "array" && !has_items) || (keeps && props.type() == "object");
    if (!untyped) AddText("type", props.type(), out);
    if (has_items) out["items"] = Schema(props.items().schema());
    if (!open) AddProperties(props, out);
    AddAdditional(props, out);
    if (props.additional_properties().schema().nullable()) return;
    json::array required;
    for (const std::string& name : props.required()) {
      const auto it = props.properties().find(name);
      if (open || it == props.properties().end() || !it->second.nullable()) required.emplace_back(Text(name));
    }
    if (!required.empty()) out["required"] = std::move(required);
  }

  void AddBranches(const Props& props, json::object& out) const {
    const auto add = [&](const char* name, const google::protobuf::RepeatedPtrField<Props>& schemas) {
      if (schemas.empty()) return;
      json::array& list = out[name].emplace_array();
      for (const Props& schema : schemas) list.push_back(Schema(schema));
    };
    add("allOf", props.all_of());
    add("anyOf", props.any_of());
    add("oneOf", props.one_of());
    if (props.has_not_()) out["not"] = Schema(props.not_());
    // The extension in words that every reader knows.
    if (!props.x_kubernetes_int_or_string() || IsIntegerOrString(props.any_of()) ||
        (!props.all_of().empty() && IsIntegerOrString(props.all_of(0).any_of()))) {
      return;
    }
    json::array either{json::object{{"type", "integer"}}, json::object{{"type", "string"}}};
    if (props.any_of().empty()) {
      out["anyOf"] = std::move(either);
      return;
    }
    json::value& all = out["allOf"];
    if (!all.is_array()) all.emplace_array();
    all.get_array().insert(all.get_array().begin(), json::object{{"anyOf", std::move(either)}});
  }

  void AddEmbedded(json::object& out) const {
    AddObjectFields(out);
    json::value& required = out["required"];
    if (!required.is_array()) required.emplace_array();
    json::array& list = required.get_array();
    for (const char* name : {"kind", "apiVersion"}) {
      if (std::find(list.begin(), list.end(), json::value(name)) == list.end()) list.emplace_back(name);
    }
  }

  const OpenApiVersion version_;
};

const apiextensionsv1::CustomResourceDefinitionVersion* FindVersion(
    const apiextensionsv1::CustomResourceDefinition& definition, std::string_view name) {
  for (const auto& version : definition.spec().versions()) {
    if (version.name() == name) return &version;
  }
  return nullptr;
}

json::array Kinds(std::string_view group, std::string_view version, std::string_view kind) {
  return {json::object{{"group", Text(group)}, {"kind", Text(kind)}, {"version", Text(version)}}};
}

void AddSelectable(const apiextensionsv1::CustomResourceDefinitionVersion& version, json::object& schema) {
  if (version.selectable_fields().empty()) return;
  json::array& fields = schema["x-kubernetes-selectable-fields"].emplace_array();
  for (const auto& field : version.selectable_fields()) {
    fields.push_back(json::object{{"fieldPath", Text(TrimLeft(field.json_path(), "."))}});
  }
}

json::object KindSchema(const apiextensionsv1::CustomResourceDefinition& definition,
                        const apiextensionsv1::CustomResourceDefinitionVersion& version,
                        OpenApiVersion open_api) {
  const Props& props = version.schema().open_apiv3_schema();
  const bool open = open_api == OpenApiVersion::kV2 && (props.x_kubernetes_preserve_unknown_fields() ||
                                                        definition.spec().preserve_unknown_fields());
  // A schema with properties would make kubectl refuse the others.
  if (open || !version.schema().has_open_apiv3_schema() || !StructuralSchema::Compile(props)) {
    return {{"type", "object"}};
  }
  const Publisher publisher(open_api);
  json::object schema = publisher.Schema(props);
  publisher.AddObjectFields(schema);
  return schema;
}

json::object ListSchema(const apiextensionsv1::CustomResourceDefinitionSpec& spec, const std::string& item,
                        OpenApiVersion open_api) {
  const auto& names = spec.names();
  json::object properties{{"apiVersion", StringSchema(kApiVersionText)},
                          {"items", json::object{{"description", Text("List of " + names.plural() + ".")},
                                                 {"items", Reference(item, nullptr, open_api)},
                                                 {"type", "array"}}},
                          {"kind", StringSchema(kKindText)},
                          {"metadata", Reference(kListMeta, kListMetadataText, open_api)}};
  return {{"description", Text(fmt::format("{} is a list of {}", names.list_kind(), names.kind()))},
          {"properties", std::move(properties)},
          {"required", json::array{"items"}},
          {"type", "object"}};
}

}  // namespace

std::string PublishedName(std::string_view group, std::string_view version, std::string_view kind) {
  std::vector<std::string_view> parts = Split(group, '.');
  std::reverse(parts.begin(), parts.end());
  return fmt::format("{}.{}.{}", Join(parts, "."), version, kind);
}

std::vector<PublishedSchema> PublishSchemas(const apiextensionsv1::CustomResourceDefinition& definition,
                                            std::string_view version, OpenApiVersion open_api) {
  const auto* found = FindVersion(definition, version);
  if (!found) return {};
  const apiextensionsv1::CustomResourceDefinitionSpec& spec = definition.spec();
  std::vector<PublishedSchema> out;
  const auto publish = [&](const std::string& kind, json::object schema) {
    schema["x-kubernetes-group-version-kind"] = Kinds(spec.group(), version, kind);
    AddSelectable(*found, schema);
    out.push_back({PublishedName(spec.group(), version, kind), SortedJson(schema)});
  };
  publish(spec.names().kind(), KindSchema(definition, *found, open_api));
  publish(spec.names().list_kind(), ListSchema(spec, out[0].name, open_api));
  return out;
}

}  // namespace keelson::k8s
