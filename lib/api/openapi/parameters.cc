#include <algorithm>

#include "lib/api/openapi/descriptions.h"
#include "lib/api/openapi/operation.h"
#include "lib/api/type_table.h"
#include "lib/api/types.h"

namespace keelson::api {
namespace {

// The description of a parameter: the text of the field that it sets.
std::string TextOf(std::string_view name) {
  for (const Descriptor* options : {metav1::ListOptions::descriptor(), metav1::PatchOptions::descriptor(),
                                    metav1::DeleteOptions::descriptor()}) {
    if (const auto* field = options->FindFieldByCamelcaseName(std::string(name))) {
      return std::string(DescriptionOf(field));
    }
  }
  return "";
}

OpenApiParameter Query(std::string name, std::string type) {
  std::string text = TextOf(name);
  return {std::move(name), std::move(type), "query", std::move(text)};
}

}  // namespace

OpenApiParameter PrettyParameter() {
  return {"pretty", "string", "query", "Whether JSON is indented for people: true or false."};
}

OpenApiParameter ResourceVersionParameter() { return Query("resourceVersion", "string"); }

std::vector<OpenApiParameter> ListParameters() {
  std::vector<OpenApiParameter> all = DeleteCollectionParameters();
  std::erase_if(all, [](const OpenApiParameter& p) {
    return !metav1::ListOptions::descriptor()->FindFieldByCamelcaseName(p.name);
  });
  all.push_back(Query("allowWatchBookmarks", "boolean"));
  all.push_back(Query("watch", "boolean"));
  return all;
}

std::vector<OpenApiParameter> DeleteCollectionParameters() {
  std::vector<OpenApiParameter> all = DeleteParameters();
  for (const char* text : {"continue", "fieldSelector", "labelSelector", "resourceVersion",
                           "resourceVersionMatch", "shardSelector"}) {
    all.push_back(Query(text, "string"));
  }
  all.push_back(Query("limit", "integer"));
  all.push_back(Query("timeoutSeconds", "integer"));
  all.push_back(Query("sendInitialEvents", "boolean"));
  return all;
}

std::vector<OpenApiParameter> DeleteParameters() {
  return {Query("dryRun", "string"), Query("gracePeriodSeconds", "integer"),
          Query("ignoreStoreReadErrorWithClusterBreakingPotential", "boolean"),
          Query("orphanDependents", "boolean"), Query("propagationPolicy", "string")};
}

std::vector<OpenApiParameter> WriteParameters(bool patch) {
  std::vector<OpenApiParameter> all = {Query("dryRun", "string"), Query("fieldManager", "string"),
                                       Query("fieldValidation", "string")};
  if (patch) all.push_back(Query("force", "boolean"));
  return all;
}

std::vector<OpenApiParameter> OptionParameters(const Descriptor* options) {
  std::vector<OpenApiParameter> all;
  for (const FieldInfo& field : InfoOf(options).fields) {
    std::string type;
    switch (field.kind) {
      case ValueKind::kString:
        type = "string";
        break;
      case ValueKind::kBool:
        type = "boolean";
        break;
      case ValueKind::kInt32:
      case ValueKind::kInt64:
        type = "integer";
        break;
      default:
        continue;  // as upstream, whose documents leave out sinceTime of logs
    }
    all.push_back(
        {std::string(field.json_name), type, "query", std::string(DescriptionOf(field.descriptor))});
  }
  return all;
}

std::vector<OpenApiParameter> PathParameters(std::string_view path) {
  static const std::vector<OpenApiParameter> kKnown = {
      {"name", "string", "path", "Name of the object."},
      {"namespace", "string", "path", "Namespace of the objects."},
      {"path", "string", "path", "What to ask the object for: a path below its own."}};
  std::vector<OpenApiParameter> all;
  for (const OpenApiParameter& parameter : kKnown) {
    if (path.find("{" + parameter.name + "}") != std::string_view::npos) all.push_back(parameter);
  }
  return all;
}

}  // namespace keelson::api
