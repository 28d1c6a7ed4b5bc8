// selectableFields of custom resources: fields that field selectors may use.
#include <set>

#include "lib/k8s/validation/extension/schema.h"

namespace keelson::k8s {

namespace {

using Spec = api::apiextensions::v1::CustomResourceDefinitionSpec;
using Version = api::apiextensions::v1::CustomResourceDefinitionVersion;
using Fields = google::protobuf::RepeatedPtrField<api::apiextensions::v1::SelectableField>;

constexpr int kMaxFields = 8;

// Splits a path into ".", brackets and the text between them.
std::vector<std::string_view> Tokens(std::string_view path) {
  constexpr std::string_view kDelimiters = ".[]";
  std::vector<std::string_view> tokens;
  while (!path.empty()) {
    const size_t end = path.find_first_of(kDelimiters);
    const size_t size = end == 0 ? 1 : std::min(end, path.size());
    tokens.push_back(path.substr(0, size));
    path.remove_prefix(size);
  }
  return tokens;
}

// The schema of property `name`; null when there is none.
const JsonSchema* PartOf(const JsonSchema& schema, std::string_view name) {
  if (!schema.properties().empty()) {
    const auto it = schema.properties().find(std::string(name));
    return it == schema.properties().end() ? nullptr : &it->second;
  }
  return schema.additional_properties().has_schema() ? &schema.additional_properties().schema() : nullptr;
}

// Follows the path from `schema`, which becomes the schema of the field. Returns what is wrong, or "".
std::string Follow(const std::vector<std::string_view>& tokens, const JsonSchema*& schema) {
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] == "[") return "array notation is not allowed";
    if (tokens[i] != ".") return "expected [ or . but got: " + std::string(tokens[i]);
    if (++i == tokens.size()) return "unexpected end of JSON path";
    schema = PartOf(*schema, tokens[i]);
    if (schema == nullptr) return "does not refer to a valid field";
  }
  return "";
}

// `may_be_many`: more than the limit for new definitions is allowed.
void CheckFields(const Fields& fields, const JsonSchema& schema, bool may_be_many, const Path& path,
                 FieldErrors& errors) {
  std::set<std::string_view> seen;
  for (int i = 0; i < fields.size(); ++i) {
    const std::string& json_path = fields[i].json_path();
    const Path item = path.Index(i);
    const Path place = item.Child("jsonPath");
    if (json_path.empty()) {
      errors.push_back(Required(place));
      continue;
    }
    const std::vector<std::string_view> tokens = Tokens(json_path);
    const JsonSchema* field = &schema;
    if (const std::string problem = Follow(tokens, field); !problem.empty()) {
      errors.push_back(Invalid(place, json_path, "is an invalid path: " + problem));
      continue;
    }
    if (tokens[1] == "metadata") {
      errors.push_back(Invalid(place, json_path, "must not point to fields in metadata"));
    }
    const std::string& type = field->type();
    if (type != "string" && type != "boolean" && type != "integer") {
      errors.push_back(Invalid(place, json_path,
                               "must point to a field of type string, boolean or integer. Enum string fields "
                               "and strings with formats are allowed."));
    }
    if (!seen.insert(json_path).second) errors.push_back(Duplicate(place, json_path));
  }
  const int count = static_cast<int>(seen.size());
  if (count > kMaxFields && !may_be_many) errors.push_back(TooMany(path, count, kMaxFields));
}

bool SameFields(const Fields& a, const Fields& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), SameMessage);
}

// Whether the stored definition has the same fields, and too many.
bool HadAsMany(const Version& version, const Spec* old) {
  if (old == nullptr) return false;
  return std::any_of(old->versions().begin(), old->versions().end(), [&](const Version& before) {
    return before.name() == version.name() && before.selectable_fields_size() > kMaxFields &&
           SameFields(before.selectable_fields(), version.selectable_fields());
  });
}

}  // namespace

void CheckSelectableFields(const Spec& spec, const Spec* old, bool shared_schema, const Path& path,
                           FieldErrors& errors) {
  const Path list = path.Child("versions");
  const bool shared =
      shared_schema &&
      std::all_of(spec.versions().begin(), spec.versions().end(), [&](const Version& version) {
        return SameFields(version.selectable_fields(), spec.versions(0).selectable_fields());
      });
  for (int i = 0; i < spec.versions_size(); ++i) {
    const Version& version = spec.versions(i);
    if (version.selectable_fields().empty() || (shared && i > 0)) continue;
    const Path item = list.Index(i);
    const Path fields = shared ? path.Child("selectableFields") : item.Child("selectableFields");
    if (version.schema().has_open_apiv3_schema()) {
      CheckFields(version.selectable_fields(), version.schema().open_apiv3_schema(), HadAsMany(version, old),
                  fields, errors);
    } else {
      errors.push_back(
          Invalid(fields, "", "may only be set when `version.schema.openAPIV3Schema` is not included"));
    }
  }
}

}  // namespace keelson::k8s
