// Structural schemas of custom resources, by the rules of apiextensions-apiserver's package schema.
#include <re2/re2.h>

#include "lib/k8s/validation/extension/schema.h"

namespace keelson::k8s {

namespace {

using google::protobuf::FieldDescriptor;
using Schemas = google::protobuf::RepeatedPtrField<JsonSchema>;

enum class Level { kRoot, kItem, kField };

constexpr char kEmpty[] = "must be empty to be structural";
constexpr char kUndefined[] = "must be undefined to be structural";
constexpr char kFalse[] = "must be false to be structural";

bool IsZero(const JsonSchema& schema, const FieldDescriptor& field) {
  if (field.is_repeated()) return false;
  const google::protobuf::Reflection& reflection = *schema.GetReflection();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL:
      return !reflection.GetBool(schema, &field);
    case FieldDescriptor::CPPTYPE_STRING:
      return reflection.GetString(schema, &field).empty();
    default:
      return false;
  }
}

// Whether the schema is empty.
bool IsBlank(const JsonSchema& schema) {
  std::vector<const FieldDescriptor*> fields;
  schema.GetReflection()->ListFields(schema, &fields);
  return std::all_of(fields.begin(), fields.end(),
                     [&](const FieldDescriptor* field) { return IsZero(schema, *field); });
}

bool IsOnlyType(JsonSchema schema, std::string_view type) {
  if (schema.type() != type) return false;
  schema.clear_type();
  return IsBlank(schema);
}

// anyOf: [{type: integer}, {type: string}] is the one place below an operator where types are allowed.
bool IsIntegerOrString(const Schemas& any_of) {
  return any_of.size() == 2 && IsOnlyType(any_of[0], "integer") && IsOnlyType(any_of[1], "string");
}

// The problem in the words of Go's regexp.
std::string_view ProblemOf(const RE2& regex) {
  switch (regex.error_code()) {
    case RE2::ErrorBadEscape:
      return "invalid escape sequence";
    case RE2::ErrorBadCharClass:
      return "invalid character class";
    case RE2::ErrorBadCharRange:
      return "invalid character class range";
    case RE2::ErrorMissingBracket:
      return "missing closing ]";
    case RE2::ErrorMissingParen:
      return "missing closing )";
    case RE2::ErrorUnexpectedParen:
      return "unexpected )";
    case RE2::ErrorTrailingBackslash:
      return "trailing backslash at end of expression";
    case RE2::ErrorRepeatArgument:
      return "missing argument to repetition operator";
    case RE2::ErrorRepeatSize:
      return "invalid repeat count";
    case RE2::ErrorRepeatOp:
      return "invalid nested repetition operator";
    case RE2::ErrorBadPerlOp:
      return "invalid or unsupported Perl syntax";
    case RE2::ErrorBadUTF8:
      return "invalid UTF-8";
    case RE2::ErrorBadNamedCapture:
      return "invalid named capture";
    default:
      return "internal error";
  }
}

void CheckPattern(const std::string& pattern, const Path& path, FieldErrors& errors) {
  const RE2 regex(pattern, RE2::Quiet);
  // A pattern that is only too large for RE2 is valid for users.
  if (regex.ok() || regex.error_code() == RE2::ErrorPatternTooLarge) return;
  std::string problem = "must be a valid regular expression, but isn't: error parsing regexp: ";
  problem += ProblemOf(regex);
  problem += ": `" + regex.error_arg() + "`";
  errors.push_back(Invalid(path, pattern, problem));
}

void CheckNested(const JsonSchema& schema, bool skip_any_of, const Path& path, FieldErrors& errors);

// Checks value constraints. `skip_any_of` and `skip_first`: skips anyOf, or the first of allOf, which say
// "integer or string".
void CheckValues(const JsonSchema& schema, bool skip_any_of, bool skip_first, const Path& path,
                 FieldErrors& errors) {
  const auto check = [&](const Schemas& schemas, const char* field, bool skip) {
    const Path list = path.Child(field);
    for (int i = 0; i < schemas.size(); ++i) CheckNested(schemas[i], skip && i == 0, list.Index(i), errors);
  };
  if (!skip_any_of) check(schema.any_of(), "anyOf", false);
  check(schema.all_of(), "allOf", skip_first);
  check(schema.one_of(), "oneOf", false);
  if (schema.has_not_()) CheckNested(schema.not_(), false, path.Child("not"), errors);
  if (!schema.pattern().empty()) CheckPattern(schema.pattern(), path.Child("pattern"), errors);
}

// Checks a schema below an operator.
void CheckNested(const JsonSchema& schema, bool skip_any_of, const Path& path, FieldErrors& errors) {
  CheckValues(schema, skip_any_of, false, path, errors);
  if (schema.items().has_schema()) CheckNested(schema.items().schema(), false, path.Child("items"), errors);
  const Path properties = path.Child("properties");
  for (const auto& [name, property] : schema.properties()) {
    CheckNested(property, false, properties.Key(name), errors);
  }
  const struct {
    bool set;
    const char *field, *why;
  } forbidden[] = {
      {!schema.type().empty(), "type", kEmpty},
      {schema.additional_properties().has_schema(), "additionalProperties", kUndefined},
      {schema.has_default_(), "default", kUndefined},
      {!schema.title().empty(), "title", kEmpty},
      {!schema.description().empty(), "description", kEmpty},
      {schema.nullable(), "nullable", kFalse},
      {schema.has_external_docs(), "externalDocs", kUndefined},
      {schema.x_kubernetes_preserve_unknown_fields(), "x-kubernetes-preserve-unknown-fields", kFalse},
      {schema.x_kubernetes_embedded_resource(), "x-kubernetes-embedded-resource", kFalse},
      {schema.x_kubernetes_int_or_string(), "x-kubernetes-int-or-string", kFalse},
      {!schema.x_kubernetes_list_map_keys().empty(), "x-kubernetes-list-map-keys", kEmpty},
      {schema.has_x_kubernetes_list_type(), "x-kubernetes-list-type", kUndefined},
      {schema.has_x_kubernetes_map_type(), "x-kubernetes-map-type", kUndefined},
      {!schema.x_kubernetes_validations().empty(), "x-kubernetes-validations", kEmpty},
  };
  for (const auto& [set, field, why] : forbidden) {
    if (set) errors.push_back(Forbidden(path.Child(field), why));
  }
  if (schema.properties().contains("metadata")) {
    errors.push_back(Forbidden(properties.Key("metadata"), "must not be specified in a nested context"));
  }
}

void CheckType(const JsonSchema& schema, Level level, const Path& path, FieldErrors& errors) {
  const Path type = path.Child("type");
  if (schema.x_kubernetes_embedded_resource() && schema.type() != "object") {
    constexpr char kWhy[] = "must be object if x-kubernetes-embedded-resource is true";
    errors.push_back(schema.type().empty() ? Required(type, kWhy) : Invalid(type, schema.type(), kWhy));
  } else if (schema.type().empty() && !schema.x_kubernetes_int_or_string() &&
             !schema.x_kubernetes_preserve_unknown_fields()) {
    errors.push_back(Required(type, level == Level::kRoot ? "must not be empty at the root"
                                    : level == Level::kItem
                                        ? "must not be empty for specified array items"
                                        : "must not be empty for specified object fields"));
  }
  if (level == Level::kRoot && !schema.type().empty() && schema.type() != "object") {
    errors.push_back(Invalid(type, schema.type(), "must be object at the root"));
  }
  if (schema.type() == "array" && !schema.items().has_schema()) {
    errors.push_back(Required(path.Child("items"), "must be specified"));
  }
}

void CheckMetadata(JsonSchema metadata, bool is_object, Level level, const Path& path, FieldErrors& errors) {
  if (is_object && metadata.type() != "object") {
    errors.push_back(Invalid(path.Child("type"), metadata.type(), "must be object"));
  }
  if (level != Level::kRoot) return;
  const auto& properties = metadata.properties();
  const bool only_names = std::all_of(properties.begin(), properties.end(), [](const auto& entry) {
    return entry.first == "name" || entry.first == "generateName";
  });
  if (only_names) metadata.clear_properties();
  metadata.clear_type();
  metadata.clear_default_();
  metadata.clear_example();
  if (!IsBlank(metadata)) {
    errors.push_back(Forbidden(path,
                               "must not specify anything other than name and generateName, but metadata is "
                               "implicitly specified"));
  }
}

// Checks the standard fields of the root and of embedded objects.
void CheckObjectFields(const JsonSchema& schema, Level level, const Path& path, FieldErrors& errors) {
  const bool is_object = level == Level::kRoot || schema.x_kubernetes_embedded_resource();
  const Path properties = path.Child("properties");
  for (const char* field : {"kind", "apiVersion"}) {
    const auto it = schema.properties().find(field);
    if (it == schema.properties().end() || !is_object || it->second.type() == "string") continue;
    errors.push_back(Invalid(properties.Key(field).Child("type"), it->second.type(), "must be string"));
  }
  if (const auto it = schema.properties().find("metadata"); it != schema.properties().end()) {
    CheckMetadata(it->second, is_object, level, properties.Key("metadata"), errors);
  }
}

void CheckExtensions(const JsonSchema& schema, const Path& path, FieldErrors& errors) {
  if (schema.x_kubernetes_int_or_string()) {
    constexpr char kWhy[] = "must be false if x-kubernetes-int-or-string is true";
    if (schema.x_kubernetes_preserve_unknown_fields()) {
      errors.push_back(InvalidBool(path.Child("x-kubernetes-preserve-unknown-fields"), true, kWhy));
    }
    if (schema.x_kubernetes_embedded_resource()) {
      errors.push_back(InvalidBool(path.Child("x-kubernetes-embedded-resource"), true, kWhy));
    }
  }
  if (!schema.x_kubernetes_embedded_resource()) return;
  if (schema.has_additional_properties()) {
    errors.push_back(Forbidden(path.Child("additionalProperties"),
                               "must not be used if x-kubernetes-embedded-resource is set"));
  }
  if (!schema.x_kubernetes_preserve_unknown_fields() && schema.properties().empty()) {
    errors.push_back(Required(path.Child("properties"),
                              "must not be empty if x-kubernetes-embedded-resource is true without "
                              "x-kubernetes-preserve-unknown-fields"));
  }
}

void CheckNode(const JsonSchema& schema, Level level, const Path& path, FieldErrors& errors) {
  if (schema.items().has_schema()) {
    CheckNode(schema.items().schema(), Level::kItem, path.Child("items"), errors);
  }
  const Path properties = path.Child("properties"), additional = path.Child("additionalProperties");
  for (const auto& [name, property] : schema.properties()) {
    CheckNode(property, Level::kField, properties.Key(name), errors);
  }
  if (level == Level::kRoot && schema.has_additional_properties()) {
    errors.push_back(Forbidden(additional, "must not be used at the root"));
  }
  if (schema.additional_properties().has_schema()) {
    CheckNode(schema.additional_properties().schema(), Level::kField, additional, errors);
  }
  CheckExtensions(schema, path, errors);
  CheckValues(schema, IsIntegerOrString(schema.any_of()),
              !schema.all_of().empty() && IsIntegerOrString(schema.all_of(0).any_of()), path, errors);
  CheckType(schema, level, path, errors);
  CheckObjectFields(schema, level, path, errors);
}

// The field that an operator constrains (`bound` at `bound_path`) must exist in the schema itself (null: it
// does not).
void CheckKnown(const JsonSchema& bound, const JsonSchema* schema, const Path& path, const Path& bound_path,
                FieldErrors& errors);

void CheckKnownBelow(const JsonSchema& bound, const JsonSchema* schema, const Path& path,
                     const Path& bound_path, FieldErrors& errors) {
  if (bound.has_not_()) CheckKnown(bound.not_(), schema, path, bound_path.Child("not"), errors);
  const auto check = [&](const Schemas& schemas, const char* field) {
    const Path list = bound_path.Child(field);
    for (int i = 0; i < schemas.size(); ++i) CheckKnown(schemas[i], schema, path, list.Index(i), errors);
  };
  check(bound.all_of(), "allOf");
  check(bound.any_of(), "anyOf");
  check(bound.one_of(), "oneOf");
}

void CheckKnown(const JsonSchema& bound, const JsonSchema* schema, const Path& path, const Path& bound_path,
                FieldErrors& errors) {
  if (schema == nullptr) {
    errors.push_back(Required(path, "because it is defined in " + bound_path.ToString()));
    return;
  }
  CheckKnownBelow(bound, schema, path, bound_path, errors);
  if (bound.items().has_schema()) {
    const bool known = schema->items().has_schema();
    CheckKnown(bound.items().schema(), known ? &schema->items().schema() : nullptr, path.Child("items"),
               bound_path.Child("items"), errors);
  }
  const Path properties = path.Child("properties"), bound_properties = bound_path.Child("properties");
  for (const auto& [name, property] : bound.properties()) {
    const auto it = schema->properties().find(name);
    CheckKnown(property, it == schema->properties().end() ? nullptr : &it->second, properties.Key(name),
               bound_properties.Key(name), errors);
  }
}

}  // namespace

void CheckStructural(const JsonSchema& schema, const Path& path, FieldErrors& errors) {
  FieldErrors found;
  CheckNode(schema, Level::kRoot, path, found);
  CheckKnownBelow(schema, &schema, path, path, found);
  std::sort(found.begin(), found.end(),
            [](const FieldError& a, const FieldError& b) { return a.ToString() < b.ToString(); });
  errors.insert(errors.end(), found.begin(), found.end());
}

}  // namespace keelson::k8s
