// Schemas of custom resources: the supported subset of OpenAPI.
#include "lib/k8s/validation/extension/schema.h"

#include <set>

#include "lib/base/text.h"
#include "lib/k8s/schema/decl_types.h"
#include "lib/k8s/validation/parts.h"

namespace keelson::k8s {

namespace {

using Spec = api::apiextensions::v1::CustomResourceDefinitionSpec;
using ValidationRule = api::apiextensions::v1::ValidationRule;

constexpr std::string_view kTypes[] = {"array", "boolean", "integer", "number", "object", "string"};

bool IsKnownType(const std::string& type) {
  return std::find(std::begin(kTypes), std::end(kTypes), type) != std::end(kTypes);
}

// Whether `is` holds for the schema or for any within it.
template <typename Predicate>
bool Any(const JsonSchema& schema, const Predicate& is) {
  const auto any = [&](const JsonSchema& within) { return Any(within, is); };
  const auto in_list = [&](const auto& list) { return std::any_of(list.begin(), list.end(), any); };
  const auto in_map = [&](const auto& map) {
    return std::any_of(map.begin(), map.end(), [&](const auto& entry) { return any(entry.second); });
  };
  return is(schema) || (schema.items().has_schema() && any(schema.items().schema())) ||
         in_list(schema.items().json_schemas()) || in_list(schema.all_of()) || in_list(schema.any_of()) ||
         in_list(schema.one_of()) || (schema.has_not_() && any(schema.not_())) ||
         in_map(schema.properties()) ||
         (schema.additional_properties().has_schema() && any(schema.additional_properties().schema())) ||
         in_map(schema.pattern_properties()) || in_map(schema.definitions());
}

// Whether the schema avoids everything that no structural schema can be made from.
bool CanBeStructural(const JsonSchema& schema) {
  return !Any(schema, [](const JsonSchema& within) {
    return !within.id().empty() || !within.schema().empty() || !within.ref().empty() ||
           !within.pattern_properties().empty() || !within.dependencies().empty() ||
           within.has_additional_items() || !within.definitions().empty() ||
           !within.items().json_schemas().empty() ||
           (within.has_x_kubernetes_preserve_unknown_fields() &&
            !within.x_kubernetes_preserve_unknown_fields());
  });
}

// True also for schemas that no path can be followed in.
bool LeadsToAField(const JsonSchema& schema, const std::string& path) {
  const auto compiled = StructuralSchema::Compile(schema);
  if (!compiled) return true;
  const SchemaNodes& nodes = (*compiled)->nodes();
  return ResolveFieldPath(nodes, nodes.root, path).has_value();
}

// State that changes on the way down.
struct Scope {
  bool is_root = false;
  bool in_meta = false;     // in kind, apiVersion or metadata of an object
  std::string no_defaults;  // why defaults are not allowed here
};

class Checker {
 public:
  Checker(const SchemaRules& rules, FieldErrors& errors) : rules_(rules), errors_(errors) {}

  void Check(const JsonSchema& schema, const Scope& scope, const Path& path) {
    CheckUnsupported(schema, scope, path);
    CheckAdditional(schema, scope, path);
    CheckBelow(schema, scope, path);
    if (schema.has_x_kubernetes_preserve_unknown_fields() && !schema.x_kubernetes_preserve_unknown_fields()) {
      errors_.push_back(InvalidBool(path.Child("x-kubernetes-preserve-unknown-fields"), false,
                                    "must be true or undefined"));
    }
    CheckCollection(schema, path);
    if (rules_.map_keys) CheckKeys(schema, path);
    const Path validations = path.Child("x-kubernetes-validations");
    for (int i = 0; i < schema.x_kubernetes_validations_size(); ++i) {
      CheckRule(schema, schema.x_kubernetes_validations(i), validations.Index(i));
    }
  }

  // Keys of lists of type map, and items of both types.
  void CheckKeys(const JsonSchema& schema, const Path& path) {
    const std::string& type = schema.x_kubernetes_list_type();
    if (!schema.items().has_schema() || (type != "set" && type != "map")) return;
    const JsonSchema& item = schema.items().schema();
    const Path items = path.Child("items");
    if (item.nullable()) {
      errors_.push_back(
          Forbidden(items.Child("nullable"), "cannot be nullable when x-kubernetes-list-type is " + type));
    }
    if (type == "set") return;
    const Path properties = items.Child("properties");
    for (const std::string& key : schema.x_kubernetes_list_map_keys()) {
      const auto it = item.properties().find(key);
      if (it == item.properties().end()) continue;
      if (!Contains(item.required(), key) && !it->second.has_default_()) {
        errors_.push_back(Required(properties.Key(key).Child("default"),
                                   "this property is in x-kubernetes-list-map-keys, so it must have a "
                                   "default or be a required property"));
      }
      if (it->second.nullable()) {
        errors_.push_back(
            Forbidden(properties.Key(key).Child("nullable"),
                      "this property is in x-kubernetes-list-map-keys, so it cannot be nullable"));
      }
    }
  }

 private:
  void CheckUnsupported(const JsonSchema& schema, const Scope& scope, const Path& path) {
    const auto forbid = [&](bool set, const char* field, std::string_view why) {
      if (set) errors_.push_back(Forbidden(path.Child(field), why));
    };
    if (rules_.known_types && !schema.type().empty() && !IsKnownType(schema.type())) {
      errors_.push_back(
          NotSupported(path.Child("type"), schema.type(), {std::begin(kTypes), std::end(kTypes)}));
    }
    forbid(schema.has_default_() && !scope.no_defaults.empty(), "default",
           "must not be set " + scope.no_defaults);
    forbid(!schema.id().empty(), "id", "id is not supported");
    forbid(schema.has_additional_items(), "additionalItems", "additionalItems is not supported");
    forbid(!schema.pattern_properties().empty(), "patternProperties", "patternProperties is not supported");
    forbid(!schema.definitions().empty(), "definitions", "definitions is not supported");
    forbid(!schema.dependencies().empty(), "dependencies", "dependencies is not supported");
    forbid(schema.has_ref(), "$ref", "$ref is not supported");
    forbid(schema.type() == "null", "type", "type cannot be set to null, use nullable as an alternative");
    forbid(!schema.items().json_schemas().empty(), "items", "items must be a schema object and not an array");
    forbid(scope.in_meta && schema.x_kubernetes_embedded_resource(), "x-kubernetes-embedded-resource",
           "must not be used inside of resource meta");
    forbid(schema.unique_items(), "uniqueItems",
           "uniqueItems cannot be set to true since the runtime complexity becomes quadratic");
  }

  void CheckAdditional(const JsonSchema& schema, const Scope& scope, const Path& path) {
    if (!schema.has_additional_properties()) return;
    const auto& additional = schema.additional_properties();
    const Path place = path.Child("additionalProperties");
    if (!schema.properties().empty() && (additional.has_schema() || !additional.allows())) {
      errors_.push_back(Forbidden(place, "additionalProperties and properties are mutual exclusive"));
    }
    if (!additional.has_schema()) return;
    Scope below = Below(scope);
    if (scope.in_meta) below.no_defaults = "inside additionalProperties applying to object metadata";
    Check(additional.schema(), below, place);
  }

  void CheckBelow(const JsonSchema& schema, const Scope& scope, const Path& path) {
    const Scope below = Below(scope);
    const Path properties = path.Child("properties"), definitions = path.Child("definitions"),
               items = path.Child("items"), dependencies = path.Child("dependencies");
    for (const std::string& name : SortedKeys(schema.properties())) {
      Scope of_property = below;
      const bool of_object = scope.is_root || schema.x_kubernetes_embedded_resource();
      if (of_object && (name == "metadata" || name == "kind" || name == "apiVersion")) {
        of_property.in_meta = true;
        if (scope.is_root) of_property.no_defaults = "in top-level " + name;
      }
      Check(schema.properties().at(name), of_property, properties.Key(name));
    }
    if (schema.has_not_()) Check(schema.not_(), below, path.Child("not"));
    CheckList(schema.all_of(), below, path.Child("allOf"));
    CheckList(schema.one_of(), below, path.Child("oneOf"));
    CheckList(schema.any_of(), below, path.Child("anyOf"));
    for (const std::string& name : SortedKeys(schema.definitions())) {
      Check(schema.definitions().at(name), below, definitions.Key(name));
    }
    if (schema.items().has_schema()) Check(schema.items().schema(), below, items);
    CheckList(schema.items().json_schemas(), below, items);
    for (const std::string& name : SortedKeys(schema.dependencies())) {
      const auto& dependency = schema.dependencies().at(name);
      if (dependency.has_schema()) Check(dependency.schema(), below, dependencies.Key(name));
    }
  }

  void CheckList(const google::protobuf::RepeatedPtrField<JsonSchema>& schemas, const Scope& scope,
                 const Path& path) {
    for (int i = 0; i < schemas.size(); ++i) Check(schemas[i], scope, path.Index(i));
  }

  static Scope Below(Scope scope) {
    scope.is_root = false;
    return scope;
  }

  // x-kubernetes-list-type and x-kubernetes-map-type.
  void CheckCollection(const JsonSchema& schema, const Path& path) {
    const Path list_type = path.Child("x-kubernetes-list-type"),
               map_type = path.Child("x-kubernetes-map-type");
    const bool is_list = schema.has_x_kubernetes_list_type();
    if (schema.has_x_kubernetes_map_type()) {
      ExpectType(schema, "object", "must be object if x-kubernetes-map-type is specified", path);
      const std::string& type = schema.x_kubernetes_map_type();
      if (type != "atomic" && type != "granular") {
        errors_.push_back(NotSupported(map_type, type, {"atomic", "granular"}));
      }
    }
    if (is_list) {
      const bool fits =
          ExpectType(schema, "array", "must be array if x-kubernetes-list-type is specified", path);
      const std::string& type = schema.x_kubernetes_list_type();
      if (fits && rules_.atomic_sets && type == "set") CheckSetItems(schema, path.Child("items"));
      if (type != "atomic" && type != "set" && type != "map") {
        errors_.push_back(NotSupported(list_type, type, {"atomic", "set", "map"}));
      }
    }
    if (!schema.x_kubernetes_list_map_keys().empty() && schema.x_kubernetes_list_type() != "map") {
      constexpr char kWhy[] = "must be map if x-kubernetes-list-map-keys is non-empty";
      errors_.push_back(is_list ? Invalid(list_type, schema.x_kubernetes_list_type(), kWhy)
                                : Required(list_type, kWhy));
    }
    if (schema.x_kubernetes_list_type() == "map") CheckMapList(schema, path);
  }

  bool ExpectType(const JsonSchema& schema, std::string_view type, std::string_view why, const Path& path) {
    if (schema.type() == type) return true;
    const Path place = path.Child("type");
    errors_.push_back(schema.type().empty() ? Required(place, why) : Invalid(place, schema.type(), why));
    return false;
  }

  // A set compares whole items, so its items must not be merged.
  void CheckSetItems(const JsonSchema& schema, const Path& items) {
    constexpr char kWhy[] = "must be atomic as item of a list with x-kubernetes-list-type=set";
    if (!schema.items().has_schema()) return;
    const JsonSchema& item = schema.items().schema();
    const bool has_type = item.has_x_kubernetes_list_type();
    const std::string type = has_type ? item.x_kubernetes_list_type() : "null";
    if (item.type() == "array" && has_type && type != "atomic") {
      errors_.push_back(Invalid(items.Child("x-kubernetes-list-type"), type, kWhy));
    }
    if (item.type() == "object" && item.x_kubernetes_map_type() != "atomic") {
      // Upstream shows the list type here.
      errors_.push_back(Invalid(items.Child("x-kubernetes-map-type"), type, kWhy));
    }
  }

  void CheckMapList(const JsonSchema& schema, const Path& path) {
    const Path keys = path.Child("x-kubernetes-list-map-keys"), items = path.Child("items");
    const Strings& names = schema.x_kubernetes_list_map_keys();
    if (names.empty()) {
      errors_.push_back(Required(keys, "must not be empty if x-kubernetes-list-type is map"));
    }
    if (!schema.has_items()) {
      errors_.push_back(Required(items, "must have a schema if x-kubernetes-list-type is map"));
      return;
    }
    if (!schema.items().has_schema()) {
      errors_.push_back(InvalidObject(items, schema.items(),
                                      "must only have a single schema if x-kubernetes-list-type is map"));
      return;
    }
    const JsonSchema& item = schema.items().schema();
    if (item.type() != "object") {
      errors_.push_back(Invalid(items.Child("type"), item.type(),
                                "must be object if parent array's x-kubernetes-list-type is map"));
      return;
    }
    const Path properties = items.Child("properties");
    std::set<std::string_view> seen;
    for (const std::string& name : names) {
      const auto it = item.properties().find(name);
      if (it == item.properties().end()) {
        errors_.push_back(
            InvalidRaw(keys, PrintStrings(names), "entries must all be names of item properties"));
      } else if (it->second.type() == "array" || it->second.type() == "object") {
        errors_.push_back(Invalid(properties.Key(name).Child("type"), item.type(),
                                  "must be a scalar type if parent array's x-kubernetes-list-type is map"));
      }
      if (!seen.insert(name).second) {
        errors_.push_back(InvalidRaw(keys, PrintStrings(names), "must not contain duplicate entries"));
      }
    }
  }

  void CheckRule(const JsonSchema& schema, const ValidationRule& rule, const Path& path) {
    const auto has_breaks = [](std::string_view text) {
      return text.find_first_of("\n\r") != std::string_view::npos;
    };
    const std::string_view text = Trim(rule.rule()), message = Trim(rule.message());
    const Path message_path = path.Child("message"), field_path = path.Child("fieldPath");
    if (text.empty()) {
      errors_.push_back(Required(path.Child("rule"), "rule is not specified"));
    } else if (!rule.message().empty() && message.empty()) {
      errors_.push_back(Invalid(message_path, rule.message(), "message must be non-empty if specified"));
    } else if (has_breaks(message)) {
      errors_.push_back(Invalid(message_path, rule.message(), "message must not contain line breaks"));
    } else if (has_breaks(text) && message.empty()) {
      errors_.push_back(Required(message_path, "message must be specified if rule contains line breaks"));
    }
    if (!rule.message_expression().empty() && Trim(rule.message_expression()).empty()) {
      errors_.push_back(
          Required(path.Child("messageExpression"), "messageExpression must be non-empty if specified"));
    }
    if (rule.has_reason()) {
      CheckOneOf(rule.reason(),
                 {"FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"},
                 path.Child("reason"), errors_);
    }
    if (!rule.field_path().empty() && Trim(rule.field_path()).empty()) {
      errors_.push_back(Invalid(field_path, rule.field_path(), "fieldPath must be non-empty if specified"));
    }
    if (has_breaks(rule.field_path())) {
      errors_.push_back(Invalid(field_path, rule.field_path(), "fieldPath must not contain line breaks"));
    }
    if (!rule.field_path().empty() && !LeadsToAField(schema, rule.field_path())) {
      errors_.push_back(Invalid(field_path, rule.field_path(), "fieldPath must be a valid path"));
    }
  }

  const SchemaRules& rules_;
  FieldErrors& errors_;
};

bool HasNonAtomicSet(const JsonSchema& schema) {
  if (schema.x_kubernetes_list_type() != "set" || !schema.items().has_schema()) return false;
  const JsonSchema& item = schema.items().schema();
  if (item.type() == "array") {
    return item.has_x_kubernetes_list_type() && item.x_kubernetes_list_type() != "atomic";
  }
  return item.type() == "object" && item.x_kubernetes_map_type() != "atomic";
}

// Whether a version of the stored definition has the same schema.
bool IsStored(const JsonSchema& schema, const SchemaRules& rules) {
  if (rules.old == nullptr) return false;
  const auto& versions = rules.old->versions();
  return std::any_of(versions.begin(), versions.end(), [&](const auto& version) {
    return version.schema().has_open_apiv3_schema() &&
           SameMessage(version.schema().open_apiv3_schema(), schema);
  });
}

// The status subresource removes the status from the properties, so the root may constrain nothing else.
void CheckRootWithStatus(const JsonSchema& schema, const Path& path, FieldErrors& errors) {
  constexpr char kAllowed[] =
      "only [Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength "
      "MinLength Pattern MaxItems MinItems UniqueItems MultipleOf Required Items Properties ExternalDocs "
      "Example XPreserveUnknownFields XValidations] fields are allowed at the root of the schema if the "
      "status subresource is enabled";
  const bool named = !schema.id().empty() || !schema.schema().empty() || schema.has_ref();
  if (!named && !schema.type().empty() && schema.type() != "object") {
    errors.push_back(Invalid(path.Child("type"), schema.type(),
                             "only \"object\" is allowed as the type at the root of the schema if the status "
                             "subresource is enabled"));
    return;
  }
  const bool other = schema.nullable() || schema.has_default_() || !schema.enum_().empty() ||
                     schema.has_max_properties() || schema.has_min_properties() || !schema.all_of().empty() ||
                     !schema.one_of().empty() || !schema.any_of().empty() || schema.has_not_() ||
                     schema.has_additional_properties() || !schema.pattern_properties().empty() ||
                     !schema.dependencies().empty() || schema.has_additional_items() ||
                     !schema.definitions().empty() || schema.x_kubernetes_embedded_resource() ||
                     schema.x_kubernetes_int_or_string() || !schema.x_kubernetes_list_map_keys().empty() ||
                     schema.has_x_kubernetes_list_type() || schema.has_x_kubernetes_map_type();
  if (named || other) errors.push_back(InvalidObject(path, schema, kAllowed));
}

}  // namespace

SchemaRules RulesAfter(const Spec& old) {
  SchemaRules rules;
  FieldErrors found;
  Checker checker(rules, found);
  for (const auto& version : old.versions()) {
    if (!version.schema().has_open_apiv3_schema()) continue;
    const JsonSchema& schema = version.schema().open_apiv3_schema();
    if (Any(schema,
            [](const JsonSchema& within) { return !within.type().empty() && !IsKnownType(within.type()); })) {
      rules.known_types = false;
    }
    if (Any(schema, HasNonAtomicSet)) rules.atomic_sets = false;
    Any(schema, [&](const JsonSchema& within) {
      checker.CheckKeys(within, Path(""));
      for (const ValidationRule& rule : within.x_kubernetes_validations()) {
        rules.expressions.insert(rule.rule());
        rules.expressions.insert(rule.message_expression());
      }
      return false;
    });
    FieldErrors defaults;
    CheckDefaults(schema, true, Path(""), defaults);
    rules.pruned_defaults =
        rules.pruned_defaults && std::none_of(defaults.begin(), defaults.end(), [](const FieldError& error) {
          return error.detail == "must not have unknown fields";
        });
  }
  rules.map_keys = found.empty();
  rules.old = &old;
  return rules;
}

void CheckSchema(const JsonSchema& schema, bool has_status, const SchemaRules& rules, const Path& path,
                 FieldErrors& errors) {
  FieldErrors found;
  if (has_status) CheckRootWithStatus(schema, path, found);
  if (schema.nullable()) {
    found.push_back(Forbidden(path.Child("nullable"), "nullable cannot be true at the root"));
  }
  const bool can_be_structural = CanBeStructural(schema);
  if (can_be_structural) {
    const size_t before = found.size();
    CheckStructural(schema, path, found);
    if (found.size() == before) CheckDefaults(schema, rules.pruned_defaults, path, found);
  }
  Checker(rules, found).Check(schema, {.is_root = true, .in_meta = false, .no_defaults = ""}, path);
  // Of the things that no structural schema can be made from, only $schema has no error of its own above.
  if (!can_be_structural && found.empty()) {
    found.push_back(Invalid(path, "", "OpenAPIV3Schema 'schema' is not supported"));
  }
  // Rules about a broken schema would give errors that follow from the schema alone.
  if (found.empty()) {
    const auto compiled = StructuralSchema::Compile(schema);
    if (compiled) {
      CheckCelRules(schema, **compiled, {rules.expressions, IsStored(schema, rules)}, path, found);
    } else {
      found.push_back(Invalid(path, "", "failed to build validator: " + compiled.error().message()));
    }
  }
  errors.insert(errors.end(), found.begin(), found.end());
}

}  // namespace keelson::k8s
