// Warnings about CustomResourceDefinitions: formats that no value is checked against
// (k8s.io/apiextensions-apiserver/pkg/registry/customresourcedefinition).
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "lib/k8s/schema/formats.h"
#include "lib/k8s/warnings/internal.h"

namespace keelson::k8s {

namespace {

using api::apiextensions::v1::CustomResourceDefinition;
using api::apiextensions::v1::JSONSchemaProps;
using Formats = std::vector<std::string>;

SchemaType TypeOf(std::string_view name) {
  constexpr std::pair<std::string_view, SchemaType> kTypes[] = {{"", SchemaType::kAny},
                                                                {"string", SchemaType::kString},
                                                                {"integer", SchemaType::kInteger},
                                                                {"number", SchemaType::kNumber}};
  for (const auto& [known, type] : kTypes) {
    if (known == name) return type;
  }
  return SchemaType::kObject;  // has no formats, as all others
}

void Collect(const JSONSchemaProps& schema, Formats& out);

template <typename Schemas>
void CollectList(const Schemas& schemas, Formats& out) {
  for (const JSONSchemaProps& one : schemas) Collect(one, out);
}

// In the order of names, so that warnings keep theirs.
template <typename Schemas>
void CollectMap(const Schemas& schemas, Formats& out) {
  std::map<std::string_view, const JSONSchemaProps*> sorted;
  for (const auto& [name, schema] : schemas) sorted.emplace(name, &schema);
  for (const auto& [name, schema] : sorted) Collect(*schema, out);
}

void Collect(const JSONSchemaProps& schema, Formats& out) {
  const std::string& format = schema.format();
  if (!format.empty() && !IsCheckedFormat(format, TypeOf(schema.type())) &&
      std::find(out.begin(), out.end(), format) == out.end()) {
    out.push_back(format);
  }
  if (schema.items().has_schema()) Collect(schema.items().schema(), out);
  CollectList(schema.items().json_schemas(), out);
  CollectList(schema.all_of(), out);
  CollectList(schema.any_of(), out);
  CollectList(schema.one_of(), out);
  if (schema.has_not_()) Collect(schema.not_(), out);
  CollectMap(schema.properties(), out);
  if (schema.additional_properties().has_schema()) Collect(schema.additional_properties().schema(), out);
  CollectMap(schema.pattern_properties(), out);
  if (schema.additional_items().has_schema()) Collect(schema.additional_items().schema(), out);
  CollectMap(schema.definitions(), out);
}

Formats UnrecognizedFormats(const CustomResourceDefinition& definition) {
  Formats out;
  for (const auto& version : definition.spec().versions()) {
    if (version.has_schema()) Collect(version.schema().open_apiv3_schema(), out);
  }
  return out;
}

}  // namespace

void WarnOfDefinition(const CustomResourceDefinition& object, const CustomResourceDefinition* old,
                      Warnings& out) {
  const Formats before = old ? UnrecognizedFormats(*old) : Formats();
  for (const std::string& format : UnrecognizedFormats(object)) {
    if (std::find(before.begin(), before.end(), format) != before.end()) continue;
    out.push_back(fmt::format("unrecognized format {}", Quote(format)));
  }
}

}  // namespace keelson::k8s
