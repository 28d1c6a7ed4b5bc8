// Internal to lib/k8s/validation/extension: schemas of custom resources.
#pragma once

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "lib/api/proto/apiextensions_v1.pb.h"
#include "lib/k8s/schema/structural_schema.h"
#include "lib/k8s/validation/internal.h"

namespace keelson::k8s {

using JsonSchema = api::apiextensions::v1::JSONSchemaProps;

// Rules that a schema need not follow when the stored one already breaks them (false).
struct SchemaRules {
  bool known_types = true;
  bool atomic_sets = true;  // items of lists of type set
  bool map_keys = true;     // keys of lists of type map must not be nullable
  bool pruned_defaults = true;
  std::set<std::string> expressions;  // CEL, of the stored definition
  const api::apiextensions::v1::CustomResourceDefinitionSpec* old =
      nullptr;  // the stored definition, or null
};

// What CEL rules are not held against because it is stored.
struct StoredRules {
  const std::set<std::string>& expressions;  // may use all that this version knows
  bool unchanged = false;                    // the schema: its rules may cost what they cost
};

// The rules for an update of `old`: those that it already breaks are off.
SchemaRules RulesAfter(const api::apiextensions::v1::CustomResourceDefinitionSpec& old);

// Checks the schema of a version. `has_status`: the version has the status subresource, which limits what
// the root may use. Does not compile CEL rules, and does not check defaults against their schemas.
void CheckSchema(const JsonSchema& schema, bool has_status, const SchemaRules& rules, const Path& path,
                 FieldErrors& errors);

// Checks that the schema is structural: every field has a type, and logical operators only constrain
// values.
void CheckStructural(const JsonSchema& schema, const Path& path, FieldErrors& errors);

// Checks that defaults are valid by their own schemas and, if `must_be_pruned`, have no unknown fields.
void CheckDefaults(const JsonSchema& schema, bool must_be_pruned, const Path& path, FieldErrors& errors);

// Compiles the CEL rules. `compiled`: the schema.
void CheckCelRules(const JsonSchema& schema, const StructuralSchema& compiled, const StoredRules& stored,
                   const Path& path, FieldErrors& errors);

// Checks the fields for field selectors. `old`: the stored definition, or null. `shared_schema`: all
// versions have one schema; they are checked together where their fields are the same too.
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
