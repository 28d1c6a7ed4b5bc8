// unity: alone. Only programs that serve OpenAPI pay for it.
#include "lib/api/openapi/openapi.h"

#include <algorithm>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "lib/api/openapi/parts.h"
#include "lib/api/wire.h"
#include "lib/base/version.h"

namespace keelson::api {
namespace {

std::string InfoJson() { return fmt::format(R"({{"title":"Kubernetes","version":"{}"}})", kGitVersion); }

// Upstream's words for documents of custom resources alone.
constexpr const char* kCustomInfo = R"({"title":"Kubernetes CRD Swagger","version":"v0.1.0"})";

using GroupVersions = std::set<std::pair<std::string_view, std::string_view>>;

GroupVersions ServedGroupVersions(const OpenApiFilter& filter) {
  GroupVersions served;
  for (const ResourceInfo& info : Resources()) {
    if (IsServed(filter, info)) served.emplace(info.group, info.version);
  }
  return served;
}

std::string DocumentOf(std::string_view group, std::string_view version) {
  return group.empty() ? fmt::format("api/{}", version) : fmt::format("apis/{}/{}", group, version);
}

// Visits every path of version 2.
void ForEachPathV2(const OpenApiFilter& served, const PathVisitor& visit) {
  for (const OpenApiPlace& place : OpenApiPlaces(served)) {
    visit(place.path, PlaceJson(place, OpenApiVersion::kV2));
  }
  for (const auto& [group, version] : ServedGroupVersions(served)) {
    ForEachPath(group, version, OpenApiVersion::kV2, served, visit);
  }
}

// Sorted by name, like the documents.
std::map<std::string, const Descriptor*> ByName(const std::set<const Descriptor*>& types) {
  std::map<std::string, const Descriptor*> named;
  for (const Descriptor* type : types) named.emplace(OpenApiName(type), type);
  return named;
}

std::map<std::string, const Descriptor*> AllTypes(const OpenApiFilter& served) {
  std::set<const Descriptor*> types;
  for (const auto& [group, version] : ServedGroupVersions(served)) {
    types.merge(TypesOf(group, version, served));
  }
  for (const OpenApiPlace& place : OpenApiPlaces(served)) {
    if (place.reply) AddReferencedTypes(place.reply, types);
  }
  types.merge(CustomOpenApiTypes(true));
  return ByName(types);
}

// "apis/apps/v1" -> {"apps", "v1"}, "api/v1" -> {"", "v1"}; nothing for documents without a group version.
std::optional<std::pair<std::string_view, std::string_view>> GroupVersionOf(std::string_view document,
                                                                            const OpenApiFilter& served) {
  for (const auto& [group, version] : ServedGroupVersions(served)) {
    if (document == DocumentOf(group, version)) return std::pair(group, version);
  }
  return std::nullopt;
}

// Appends a member of a JSON object.
void AddMember(std::string& out, std::string_view name, std::string_view json) {
  if (out.back() != '{') out += ',';
  out.append("\"").append(name).append("\":").append(json);
}

}  // namespace

OpenApiParts OpenApiV2Parts(const OpenApiFilter& served) {
  OpenApiParts out;
  out.head = fmt::format(R"({{"swagger":"2.0","info":{},"paths":{{)", InfoJson());
  ForEachPathV2(served,
                [&](const std::string& path, const std::string& json) { AddMember(out.head, path, json); });
  out.middle = "},\"definitions\":{";
  for (const auto& [name, type] : AllTypes(served)) {
    AddMember(out.middle, name, SchemaJson(type, OpenApiVersion::kV2));
  }
  AddMember(out.middle, kVersionInfoSchema, NamedSchema(kVersionInfoSchema, OpenApiVersion::kV2));
  out.tail =
      fmt::format(R"(}},"securityDefinitions":{},"security":[{{"BearerToken":[]}}]}})", kSecurityScheme);
  return out;
}

std::string OpenApiV2Json(const OpenApiFilter& served) { return OpenApiV2Parts(served).Joined(); }

std::string OpenApiV2Protobuf(const OpenApiFilter& served) {
  std::string out;
  Sink sink(out);
  wire::PutBytes(sink, 1, "2.0");
  wire::Open info = wire::Begin(sink, 2);
  wire::PutBytes(sink, 1, "Kubernetes");
  wire::PutBytes(sink, 2, kGitVersion);
  wire::End(sink, info);
  OpenApiNamed paths, definitions;
  ForEachPathV2(served,
                [&](const std::string& path, const std::string& json) { paths.emplace_back(path, json); });
  for (const auto& [name, type] : AllTypes(served)) {
    definitions.emplace_back(name, SchemaJson(type, OpenApiVersion::kV2));
  }
  definitions.emplace_back(kVersionInfoSchema, NamedSchema(kVersionInfoSchema, OpenApiVersion::kV2));
  sink.Append(GnosticPartV2(paths, definitions));
  sink.Append(GnosticSecurity(kSecurityScheme));
  sink.Finish();
  return out;
}

OpenApiParts OpenApiV3PartsWith(std::string_view document, const std::set<const Descriptor*>& more,
                                const OpenApiFilter& served) {
  std::string paths = "{", schemas = "{";
  std::set<const Descriptor*> types = more;
  const auto group_version = GroupVersionOf(document, served);
  if (group_version) {
    const auto& [group, version] = *group_version;
    types.merge(TypesOf(group, version, served));
    ForEachPath(group, version, OpenApiVersion::kV3, served,
                [&](const std::string& path, const std::string& json) { AddMember(paths, path, json); });
  } else {
    for (const OpenApiPlace& place : OpenApiPlaces(served)) {
      if (place.document != document) continue;
      AddMember(paths, place.path, PlaceJson(place, OpenApiVersion::kV3));
      if (place.reply) AddReferencedTypes(place.reply, types);
      if (!place.named_reply.empty()) {
        AddMember(schemas, place.named_reply, NamedSchema(place.named_reply, OpenApiVersion::kV3));
      }
    }
  }
  const bool built_in = paths != "{";
  if (!built_in && more.empty()) return {};
  for (const auto& [name, type] : ByName(types)) {
    AddMember(schemas, name, SchemaJson(type, OpenApiVersion::kV3));
  }
  return {
      fmt::format(R"({{"openapi":"3.0.0","info":{},"paths":{})", built_in ? InfoJson() : kCustomInfo, paths),
      fmt::format(R"(}},"components":{{"schemas":{})", schemas),
      built_in ? fmt::format(R"(}},"securitySchemes":{}}}}})", kSecurityScheme) : "}}}", built_in};
}

OpenApiParts OpenApiV3Parts(std::string_view document, const OpenApiFilter& served) {
  return OpenApiV3PartsWith(document, {}, served);
}

std::string OpenApiV3Json(std::string_view document, const OpenApiFilter& served) {
  return OpenApiV3Parts(document, served).Joined();
}

std::string OpenApiV3Protobuf(std::string_view document, const OpenApiFilter& served) {
  std::string json = OpenApiV3Json(document, served);
  return json.empty() ? "" : GnosticDocumentV3(json);
}

std::vector<std::string> OpenApiV3Paths(const OpenApiFilter& served) {
  std::vector<std::string> paths;
  for (const OpenApiPlace& place : OpenApiPlaces(served)) paths.push_back(place.document);
  for (const auto& [group, version] : ServedGroupVersions(served)) {
    paths.push_back(DocumentOf(group, version));
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace keelson::api
