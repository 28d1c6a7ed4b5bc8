// unity: alone. Only programs that serve OpenAPI pay for it.
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "lib/api/openapi/descriptions.h"
#include "lib/api/openapi/openapi.h"
#include "lib/api/openapi/parts.h"
#include "lib/api/type_table.h"
#include "lib/base/json_quote.h"

namespace keelson::api {
namespace {

constexpr std::string_view kPackagePrefix = "keelson.api.";

// Members of every kind that no message declares.
constexpr std::string_view kApiVersionSchema =
    R"({"description":"Group and version of the schema that the object is written in, such as apps/v1; just v1 for the core group.","type":"string"})";
constexpr std::string_view kKindSchema =
    R"({"description":"Name of the object's type in CamelCase, such as Deployment; cannot be changed.","type":"string"})";

template <typename List>
std::string QuotedList(const List& list) {
  std::string out = "[";
  for (const auto& item : list) out += (out.size() > 1 ? "," : "") + JsonQuoted(item);
  return out + "]";
}

// Collects the members of a JSON object.
class ObjectText {
 public:
  ObjectText& Add(std::string_view name, std::string_view json) {
    text_ += (text_.empty() ? "" : ",") + JsonQuoted(name) + ":";
    text_ += json;
    return *this;
  }
  bool empty() const { return text_.empty(); }
  std::string Take() const { return "{" + text_ + "}"; }

 private:
  std::string text_;
};

std::string TypeText(std::string_view type, std::string_view format = {}) {
  return format.empty() ? fmt::format(R"({{"type":"{}"}})", type)
                        : fmt::format(R"({{"type":"{}","format":"{}"}})", type, format);
}

std::string ScalarSchema(ValueKind kind) {
  switch (kind) {
    case ValueKind::kString:
      return TypeText("string");
    case ValueKind::kBytes:
      return TypeText("string", "byte");
    case ValueKind::kBool:
      return TypeText("boolean");
    case ValueKind::kInt32:
      return TypeText("integer", "int32");
    case ValueKind::kInt64:
      return TypeText("integer", "int64");
    case ValueKind::kDouble:
      return TypeText("number", "double");
    case ValueKind::kMessage:
      break;
  }
  return "{}";
}

// The schema of a type whose JSON is not an object; empty for the others.
std::string FormSchema(const MessageInfo& info, bool v3) {
  switch (info.form) {
    case JSON_OBJECT:
      return "";
    case JSON_TIME:
    case JSON_MICRO_TIME:
      return TypeText("string", "date-time");
    case JSON_DURATION:
      return TypeText("string");
    case JSON_QUANTITY:
      return v3 ? R"({"oneOf":[{"type":"string"},{"type":"number"}]})" : TypeText("string");
    case JSON_INT_OR_STRING:
      return v3 ? R"({"format":"int-or-string","oneOf":[{"type":"integer"},{"type":"string"}]})"
                : TypeText("string", "int-or-string");
    case JSON_RAW:
      return info.descriptor->name() == "JSON" ? "{}" : TypeText("object");
    case JSON_LIST:
      return v3 ? R"({"items":{"default":"","type":"string"},"type":"array"})"
                : R"({"items":{"type":"string"},"type":"array"})";
    case JSON_SCHEMA_OR_BOOL:
    case JSON_SCHEMA_OR_ARRAY:
    case JSON_SCHEMA_OR_STRINGS:
      return "{}";
  }
  return "{}";
}

void AddDescription(std::string_view text, ObjectText& out) {
  if (!text.empty()) out.Add("description", JsonQuoted(text));
}

// The default of a field that Go never leaves out: structs, and scalars that are always printed. Null for a
// field that may be absent.
std::string_view ZeroOf(const FieldInfo& field) {
  switch (field.kind) {
    case ValueKind::kString:
      return "\"\"";
    case ValueKind::kBool:
      return "false";
    case ValueKind::kInt32:
    case ValueKind::kInt64:
    case ValueKind::kDouble:
      return "0";
    case ValueKind::kMessage:
      return field.message->form == JSON_OBJECT ? "{}" : "";
    case ValueKind::kBytes:
      break;
  }
  return "";
}

std::string_view DefaultOf(const FieldInfo& field) {
  const auto& options = field.descriptor->options();
  if (options.HasExtension(default_json)) return options.GetExtension(default_json);
  if (field.pointer || field.repeated || field.map) return "";
  return field.kind == ValueKind::kMessage || field.always ? ZeroOf(field) : "";
}

// Adds the description, extensions and constraints beside a field's type. Version 2 has no defaults.
void AddFieldFacts(const FieldInfo& field, OpenApiVersion version, ObjectText& out) {
  static const std::map<ListType, std::string_view> kListTypes = {
      {LIST_ATOMIC, "atomic"}, {LIST_MAP, "map"}, {LIST_SET, "set"}};
  AddDescription(DescriptionOf(field.descriptor), out);
  const auto& options = field.descriptor->options();
  if (std::string_view value = DefaultOf(field); !value.empty() && version == OpenApiVersion::kV3) {
    out.Add("default", value);
  }
  ListType list = options.GetExtension(list_type);
  if (list == MAP_ATOMIC || list == MAP_GRANULAR) {
    out.Add("x-kubernetes-map-type", list == MAP_ATOMIC ? "\"atomic\"" : "\"granular\"");
  }
  std::vector<std::string> keys;
  for (int i = 0; i < options.ExtensionSize(list_map_key); ++i) {
    keys.push_back(options.GetExtension(list_map_key, i));
  }
  if (!keys.empty()) out.Add("x-kubernetes-list-map-keys", QuotedList(keys));
  if (auto it = kListTypes.find(list); it != kListTypes.end()) {
    out.Add("x-kubernetes-list-type", JsonQuoted(it->second));
  }
  if (options.HasExtension(patch_merge_key)) {
    out.Add("x-kubernetes-patch-merge-key", JsonQuoted(options.GetExtension(patch_merge_key)));
  }
  if (options.HasExtension(patch_strategy)) {
    out.Add("x-kubernetes-patch-strategy", JsonQuoted(options.GetExtension(patch_strategy)));
  }
}

std::string WithoutBraces(std::string_view json) { return std::string(json.substr(1, json.size() - 2)); }

// `value` (an object) with the members of `facts` added.
std::string Joined(const std::string& value, const ObjectText& facts) {
  if (facts.empty()) return value;
  std::string members = WithoutBraces(value);
  return "{" + members + (members.empty() ? "" : ",") + WithoutBraces(facts.Take()) + "}";
}

// A list of strings has no named schema: it is inlined where it is used.
std::string ValueSchema(const FieldInfo& field, OpenApiVersion version) {
  if (field.kind != ValueKind::kMessage) return ScalarSchema(field.kind);
  if (field.message->form == JSON_LIST) return FormSchema(*field.message, version == OpenApiVersion::kV3);
  return SchemaRef(field.message->descriptor, version);
}

bool IsRequired(const FieldInfo& field) {
  const auto& descriptor = *field.descriptor;
  // Upstream publishes no schema of this type, because it is inlined.
  if (descriptor.name() == "name" && descriptor.containing_type()->name() == "EphemeralContainerCommon") {
    return true;
  }
  return descriptor.options().GetExtension(api::required);
}

// List items and map values are never absent.
std::string WithZero(const std::string& value, const FieldInfo& field) {
  std::string_view zero = ZeroOf(field);
  if (zero.empty()) return value;
  ObjectText facts;
  facts.Add("default", zero);
  return Joined(field.kind == ValueKind::kMessage ? "{\"allOf\":[" + value + "]}" : value, facts);
}

std::string FieldSchema(const FieldInfo& field, OpenApiVersion version) {
  bool v3 = version == OpenApiVersion::kV3;
  const auto& options = field.descriptor->options();
  std::string value = ValueSchema(field, version);
  std::vector<std::string> values;
  for (int i = 0; i < options.ExtensionSize(enum_value); ++i) {
    values.push_back(options.GetExtension(enum_value, i));
  }
  for (std::string_view one : ClosedValues(field.descriptor)) values.emplace_back(one);
  if (!values.empty()) {
    std::sort(values.begin(), values.end());
    ObjectText constraint;
    constraint.Add("enum", QuotedList(values));
    value = Joined(value, constraint);
  }
  ObjectText facts;
  AddFieldFacts(field, version, facts);
  if (v3 && (field.map || field.repeated)) value = WithZero(value, field);
  if (field.map) return Joined(R"({"additionalProperties":)" + value + R"(,"type":"object"})", facts);
  if (field.repeated) return Joined(R"({"items":)" + value + R"(,"type":"array"})", facts);
  // In version 3 everything beside a reference is ignored, so the reference moves into allOf.
  if (v3 && field.kind == ValueKind::kMessage && !facts.empty()) {
    return Joined("{\"allOf\":[" + value + "]}", facts);
  }
  return Joined(value, facts);
}

// The group, version and kinds of a type, for x-kubernetes-group-version-kind.
std::string KindsJson(const Descriptor* type) {
  GroupVersionKind gvk = GvkOf(type);
  auto entry = [&](std::string_view group, std::string_view version) {
    return fmt::format(R"({{"group":"{}","kind":"{}","version":"{}"}})", group, gvk.kind, version);
  };
  if (type->name() == "DeleteOptions" || type->name() == "WatchEvent") {
    std::string out;
    std::set<std::pair<std::string_view, std::string_view>> seen;
    for (const ResourceInfo& info : Resources()) {
      if (!seen.emplace(info.group, info.version).second) continue;
      out += (out.empty() ? "" : ",") + entry(info.group, info.version);
    }
    return "[" + out + "]";
  }
  return "[" + entry(gvk.group, gvk.version) + "]";
}

bool IsKind(const Descriptor* type) {
  static const std::set<const Descriptor*>* kinds = [] {
    auto* all = new std::set<const Descriptor*>;
    for (const ResourceInfo& info : Resources()) {
      all->insert(info.descriptor());
      GroupVersionKind gvk = info.Gvk();
      if (const Descriptor* list = FindMessage(gvk.group, gvk.version, gvk.kind + "List")) all->insert(list);
    }
    for (const char* name : {"Status", "DeleteOptions", "WatchEvent", "APIResourceList", "APIGroup",
                             "APIGroupList", "APIVersions"}) {
      if (const Descriptor* other = FindMessage("meta.k8s.io", "v1", name)) all->insert(other);
      if (const Descriptor* other = FindMessage("", "v1", name)) all->insert(other);
    }
    return all;
  }();
  return kinds->count(type) != 0;
}

}  // namespace

std::string OpenApiName(const Descriptor* descriptor) {
  std::string_view package = descriptor->file()->package();
  package.remove_prefix(std::min(kPackagePrefix.size(), package.size()));
  static const std::map<std::string_view, std::string_view> kHomes = {
      {"meta.v1", "io.k8s.apimachinery.pkg.apis.meta.v1"},
      {"runtime", "io.k8s.apimachinery.pkg.runtime"},
      {"intstr", "io.k8s.apimachinery.pkg.util.intstr"},
      {"resource", "io.k8s.apimachinery.pkg.api.resource"},
      {"apiextensions.v1", "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1"},
      {"apiregistration.v1", "io.k8s.kube-aggregator.pkg.apis.apiregistration.v1"},
      {"metrics.v1beta1", "io.k8s.metrics.pkg.apis.metrics.v1beta1"},
  };
  auto it = kHomes.find(package);
  std::string home = it != kHomes.end() ? std::string(it->second) : "io.k8s.api." + std::string(package);
  return home + "." + descriptor->name();
}

std::string SchemaRef(std::string_view name, OpenApiVersion version) {
  std::string_view where = version == OpenApiVersion::kV3 ? "#/components/schemas/" : "#/definitions/";
  return fmt::format(R"({{"$ref":"{}{}"}})", where, name);
}

std::string SchemaRef(const Descriptor* type, OpenApiVersion version) {
  return SchemaRef(OpenApiName(type), version);
}

std::string SchemaJson(const Descriptor* type, OpenApiVersion version) {
  const MessageInfo& info = InfoOf(type);
  ObjectText schema;
  AddDescription(DescriptionOf(type), schema);
  if (info.form != JSON_OBJECT) return Joined(FormSchema(info, version == OpenApiVersion::kV3), schema);
  std::map<std::string, std::string> properties;
  std::vector<std::string> required;
  for (const JsonKey& key : info.keys) {
    properties[std::string(key.field->json_name)] = FieldSchema(*key.field, version);
    if (IsRequired(*key.field)) required.emplace_back(key.field->json_name);
  }
  bool kind = IsKind(type);
  if (kind || info.has_type_meta) {
    properties.try_emplace("apiVersion", std::string(kApiVersionSchema));
    properties.try_emplace("kind", std::string(kKindSchema));
  }
  ObjectText members;
  for (const auto& [name, json] : properties) members.Add(name, json);
  std::sort(required.begin(), required.end());
  if (!members.empty()) schema.Add("properties", members.Take());
  if (!required.empty()) schema.Add("required", QuotedList(required));
  schema.Add("type", "\"object\"");
  if (kind) schema.Add("x-kubernetes-group-version-kind", KindsJson(type));
  if (type->options().GetExtension(atomic)) schema.Add("x-kubernetes-map-type", "\"atomic\"");
  if (std::string unions = UnionsJson(type); !unions.empty()) schema.Add("x-kubernetes-unions", unions);
  return schema.Take();
}

void AddReferencedTypes(const Descriptor* type, std::set<const Descriptor*>& types) {
  const MessageInfo& info = InfoOf(type);
  if (info.form == JSON_LIST || !types.insert(type).second) return;
  if (info.form != JSON_OBJECT) return;
  for (const JsonKey& key : info.keys) {
    if (key.field->kind == ValueKind::kMessage) AddReferencedTypes(key.field->message->descriptor, types);
  }
}

}  // namespace keelson::api
