// Internal to lib/k8s: schemas of custom resources.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "lib/api/proto/apiextensions_v1.pb.h"
#include "lib/k8s/validation/internal.h"

namespace keelson::k8s {

using JsonSchema = api::apiextensions::v1::JSONSchemaProps;

// Rules that a schema need not keep when the stored one already breaks them.
struct SchemaRules {
  bool known_types = true;
  bool atomic_sets = true;  // items of lists of type set
  bool map_keys = true;     // keys of lists of type map, and items of both types that may be null
};

// The rules for an update of `old`.
SchemaRules RulesAfter(const api::apiextensions::v1::CustomResourceDefinitionSpec& old);

// The schema of a version. `has_status`: with the subresource status, which takes the schema apart. Rules in
// CEL are not compiled, and defaults not tried against their schemas.
void CheckSchema(const JsonSchema& schema, bool has_status, const SchemaRules& rules, const Path& path,
                 FieldErrors& errors);

// Whether the schema is structural: every field has a type, and logical operators only bound values.
void CheckStructural(const JsonSchema& schema, const Path& path, FieldErrors& errors);

// The fields that field selectors may use. `old`: the stored definition, or null. `shared_schema`: all
// versions have one schema, and are judged as one where the fields are the same too.
void CheckSelectableFields(const api::apiextensions::v1::CustomResourceDefinitionSpec& spec,
                           const api::apiextensions::v1::CustomResourceDefinitionSpec* old,
                           bool shared_schema, const Path& path, FieldErrors& errors);

template <typename Map>
std::vector<std::string> SortedKeys(const Map& map) {
  std::vector<std::string> keys;
  for (const auto& entry : map) keys.push_back(entry.first);
  std::sort(keys.begin(), keys.end());
  return keys;
}

}  // namespace keelson::k8s
