#include "lib/k8s/validate_schema.h"

#include <algorithm>

#include "lib/k8s/validate_parts.h"

namespace keelson::k8s {

namespace {

using Schema = api::apiextensions::v1::JSONSchemaProps;

// Where a schema stands, for what must be said about its type.
enum class Place { kRoot, kProperty, kItem, kAdditional };

constexpr char kLogic[] = "must be empty to be structural";

template <typename Map>
std::vector<std::string> Keys(const Map& map) {
  std::vector<std::string> keys;
  for (const auto& entry : map) keys.push_back(entry.first);
  std::sort(keys.begin(), keys.end());
  return keys;
}

void CheckUnsupported(const Schema& schema, const Path& path, FieldErrors& errors) {
  const auto forbid = [&](bool set, const char* field, std::string_view why) {
    if (set) errors.push_back(Forbidden(path.Child(field), why));
  };
  forbid(schema.unique_items(), "uniqueItems",
         "uniqueItems cannot be set to true since the runtime complexity becomes quadratic");
  const bool additional = schema.has_additional_properties();
  forbid(additional && !schema.properties().empty(), "additionalProperties",
         "additionalProperties and properties are mutual exclusive");
  forbid(
      additional && !schema.additional_properties().has_schema() && !schema.additional_properties().allows(),
      "additionalProperties", "additionalProperties cannot be set to false");
  forbid(schema.has_ref(), "$ref", "$ref is not supported");
  forbid(schema.type() == "null", "type", "type cannot be set to null, use nullable as an alternative");
  forbid(!schema.items().json_schemas().empty(), "items", "items must be a schema object and not an array");
  forbid(!schema.pattern_properties().empty(), "patternProperties", "patternProperties is not supported");
  forbid(!schema.definitions().empty(), "definitions", "definitions is not supported");
  forbid(!schema.dependencies().empty(), "dependencies", "dependencies is not supported");
  forbid(schema.has_additional_items(), "additionalItems", "additionalItems is not supported");
  forbid(!schema.id().empty(), "id", "id is not supported");
}

void CheckListType(const Schema& schema, const Path& path, FieldErrors& errors) {
  const Path type = path.Child("x-kubernetes-list-type"), keys = path.Child("x-kubernetes-list-map-keys");
  const Path own_type = path.Child("type");
  if (schema.has_x_kubernetes_list_type()) {
    CheckOneOf(schema.x_kubernetes_list_type(), {"atomic", "map", "set"}, type, errors);
    if (schema.type().empty()) {
      errors.push_back(Required(own_type, "must be array if x-kubernetes-list-type is specified"));
    } else if (schema.type() != "array") {
      errors.push_back(
          Invalid(own_type, schema.type(), "must be array if x-kubernetes-list-type is specified"));
    }
  }
  if (schema.has_x_kubernetes_map_type()) {
    CheckOneOf(schema.x_kubernetes_map_type(), {"atomic", "granular"}, path.Child("x-kubernetes-map-type"),
               errors);
    if (schema.type() != "object") {
      errors.push_back(
          schema.type().empty()
              ? Required(own_type, "must be object if x-kubernetes-map-type is specified")
              : Invalid(own_type, schema.type(), "must be object if x-kubernetes-map-type is specified"));
    }
  }
  const bool is_map = schema.x_kubernetes_list_type() == "map";
  if (!schema.x_kubernetes_list_map_keys().empty() && !is_map) {
    if (schema.has_x_kubernetes_list_type()) {
      errors.push_back(Invalid(type, schema.x_kubernetes_list_type(),
                               "must be map if x-kubernetes-list-map-keys is non-empty"));
    } else {
      errors.push_back(Required(type, "must be map if x-kubernetes-list-map-keys is non-empty"));
    }
  }
  if (!is_map) return;
  if (schema.x_kubernetes_list_map_keys().empty()) {
    errors.push_back(Required(keys, "must not be empty if x-kubernetes-list-type is map"));
  }
  const Path items = path.Child("items");
  if (!schema.items().has_schema()) {
    errors.push_back(Required(items, "must have a schema if x-kubernetes-list-type is map"));
    return;
  }
  const Schema& item = schema.items().schema();
  if (item.type() != "object") {
    errors.push_back(Invalid(items.Child("type"), item.type(),
                             "must be object if parent array's x-kubernetes-list-type is map"));
  }
  for (int i = 0; i < schema.x_kubernetes_list_map_keys_size(); ++i) {
    const std::string& key = schema.x_kubernetes_list_map_keys(i);
    if (item.properties().contains(key)) continue;
    errors.push_back(Invalid(keys.Index(i), key, "entries must all be names of item properties"));
  }
}

void CheckType(const Schema& schema, Place place, const Path& path, FieldErrors& errors) {
  const Path type = path.Child("type");
  if (schema.x_kubernetes_int_or_string()) {
    if (!schema.type().empty()) {
      errors.push_back(Forbidden(type, "must be empty if x-kubernetes-int-or-string is true"));
    }
    return;
  }
  const bool free = schema.x_kubernetes_preserve_unknown_fields() && place != Place::kRoot;
  if (schema.type().empty()) {
    if (free) return;
    const char* why = place == Place::kRoot   ? "must not be empty at the root"
                      : place == Place::kItem ? "must not be empty for specified array items"
                                              : "must not be empty for specified object fields";
    errors.push_back(Required(type, why));
    return;
  }
  if (schema.type() == "null") return;
  CheckOneOf(schema.type(), {"array", "boolean", "integer", "number", "object", "string"}, type, errors);
  if (place == Place::kRoot && schema.type() != "object") {
    errors.push_back(Invalid(type, schema.type(), "must be object at the root"));
  }
  if (schema.type() == "array" && !schema.has_items()) {
    errors.push_back(Required(path.Child("items"), "must be specified"));
  }
}

// Below allOf and the like, only values may be bounded.
void CheckLogic(const Schema& schema, const Path& path, FieldErrors& errors) {
  const auto forbid = [&](bool set, const char* field) {
    if (set) errors.push_back(Forbidden(path.Child(field), kLogic));
  };
  forbid(!schema.type().empty(), "type");
  forbid(schema.nullable(), "nullable");
  forbid(schema.has_default_(), "default");
  forbid(schema.has_additional_properties(), "additionalProperties");
  forbid(!schema.description().empty(), "description");
  forbid(!schema.title().empty(), "title");
  const Path properties = path.Child("properties");
  for (const std::string& name : Keys(schema.properties())) {
    CheckLogic(schema.properties().at(name), properties.Key(name), errors);
  }
}

void CheckBranches(const google::protobuf::RepeatedPtrField<Schema>& branches, const char* field,
                   bool int_or_string, const Path& path, FieldErrors& errors) {
  const Path list = path.Child(field);
  for (int i = 0; i < branches.size(); ++i) {
    // x-kubernetes-int-or-string: anyOf: [{type: integer}, {type: string}]
    if (int_or_string && (branches[i].type() == "integer" || branches[i].type() == "string")) continue;
    CheckLogic(branches[i], list.Index(i), errors);
  }
}

void CheckNode(const Schema& schema, Place place, const Path& path, FieldErrors& errors) {
  CheckUnsupported(schema, path, errors);
  CheckListType(schema, path, errors);
  CheckType(schema, place, path, errors);
  if (schema.x_kubernetes_embedded_resource()) {
    if (schema.type() != "object") {
      errors.push_back(Invalid(path.Child("type"), schema.type(),
                               "must be object if x-kubernetes-embedded-resource is true"));
    }
    if (schema.properties().empty() && !schema.x_kubernetes_preserve_unknown_fields()) {
      errors.push_back(Required(path.Child("properties"),
                                "must not be empty if x-kubernetes-embedded-resource is true without "
                                "x-kubernetes-preserve-unknown-fields"));
    }
  }
  const Path properties = path.Child("properties");
  for (const std::string& name : Keys(schema.properties())) {
    CheckNode(schema.properties().at(name), Place::kProperty, properties.Key(name), errors);
  }
  if (schema.additional_properties().has_schema()) {
    CheckNode(schema.additional_properties().schema(), Place::kAdditional, path.Child("additionalProperties"),
              errors);
  }
  if (schema.items().has_schema()) {
    CheckNode(schema.items().schema(), Place::kItem, path.Child("items"), errors);
  }
  const bool either = schema.x_kubernetes_int_or_string();
  CheckBranches(schema.all_of(), "allOf", either, path, errors);
  CheckBranches(schema.any_of(), "anyOf", either, path, errors);
  CheckBranches(schema.one_of(), "oneOf", either, path, errors);
  if (schema.has_not_()) CheckLogic(schema.not_(), path.Child("not"), errors);
}

}  // namespace

void CheckSchema(const Schema& schema, const Path& path, FieldErrors& errors) {
  CheckNode(schema, Place::kRoot, path, errors);
}

}  // namespace keelson::k8s
