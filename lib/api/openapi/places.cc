// unity: alone. Only programs that serve OpenAPI pay for it.
// Paths outside of resources: discovery of groups, the server's version, the token issuer.
#include <fmt/format.h>

#include "lib/api/openapi/operation.h"
#include "lib/api/types.h"

namespace keelson::api {
namespace {

constexpr std::string_view kObjectTypes[] = {"application/json", "application/yaml",
                                             "application/vnd.kubernetes.protobuf"};
constexpr std::string_view kJson[] = {"application/json"};
constexpr std::string_view kKeySet[] = {"application/jwk-set+json"};

constexpr std::string_view kVersionInfoText[][2] = {
    {"buildDate", "When the server was built, as RFC 3339 has it."},
    {"compiler", "Name of the compiler."},
    {"emulationMajor", "Major version that the server behaves as."},
    {"emulationMinor", "Minor version that the server behaves as."},
    {"gitCommit", "Commit that the server was built from."},
    {"gitTreeState", "Whether the sources were as committed: clean or dirty."},
    {"gitVersion", "Version of the server, such as v1.36.0."},
    {"goVersion", "Version of the language or compiler."},
    {"major", "Major version of the server."},
    {"minCompatibilityMajor", "Major version that the server is compatible with at least."},
    {"minCompatibilityMinor", "Minor version that the server is compatible with at least."},
    {"minor", "Minor version of the server."},
    {"platform", "Operating system and processor, such as linux/amd64."}};

bool IsOptionalVersion(std::string_view name) {
  return name.starts_with("emulation") || name.starts_with("minCompatibility");
}

}  // namespace

std::vector<OpenApiPlace> OpenApiPlaces(const OpenApiFilter& served) {
  std::vector<OpenApiPlace> places = {
      {".well-known/openid-configuration", "/.well-known/openid-configuration/",
       "getServiceAccountIssuerOpenIDConfiguration", "WellKnown",
       "Read the OpenID configuration of the issuer of ServiceAccount tokens.", nullptr, "", kJson},
      {"openid/v1/jwks", "/openid/v1/jwks/", "getServiceAccountIssuerOpenIDKeyset", "openid",
       "Read the keys that ServiceAccount tokens are verified with.", nullptr, "", kKeySet},
      {"version", "/version/", "getCodeVersion", "version", "Read the version of the server.", nullptr,
       kVersionInfoSchema, kJson},
      {"api", "/api/", "getCoreAPIVersions", "core", "List the versions of the core group.",
       metav1::APIVersions::descriptor(), "", kObjectTypes},
      {"apis", "/apis/", "getAPIVersions", "apis", "List the groups and their versions.",
       metav1::APIGroupList::descriptor(), "", kObjectTypes},
  };
  std::set<std::string_view> groups;
  for (const ResourceInfo& info : Resources()) {
    if (!info.group.empty() && IsServed(served, info)) groups.insert(info.group);
  }
  for (std::string_view group : groups) {
    places.push_back({fmt::format("apis/{}", group), fmt::format("/apis/{}/", group),
                      "get" + OpenApiGroupName(group) + "APIGroup", OpenApiTag(group),
                      "List the versions of the group.", metav1::APIGroup::descriptor(), "", kObjectTypes});
  }
  return places;
}

std::string PlaceJson(const OpenApiPlace& place, OpenApiVersion version) {
  OpenApiOperation operation;
  operation.method = "get";
  operation.id = place.operation;
  operation.tag = place.tag;
  operation.description = place.description;
  operation.produces = place.produces;
  if (place.reply) operation.consumes = kObjectTypes;
  if (place.named_reply == kVersionInfoSchema) operation.consumes = kJson;
  operation.reply_schema = place.reply                  ? SchemaRef(place.reply, version)
                           : !place.named_reply.empty() ? SchemaRef(place.named_reply, version)
                                                        : R"({"type":"string"})";
  operation.replies = {{200, "OK"}};
  return PathItemJson({operation}, version);
}

std::string NamedSchema(std::string_view name, OpenApiVersion version) {
  if (name != kVersionInfoSchema) return "{}";
  std::string properties, required;
  for (const auto& [field, text] : kVersionInfoText) {
    bool optional = IsOptionalVersion(field);
    properties +=
        fmt::format(R"({}"{}":{{"description":"{}",{}"type":"string"}})", properties.empty() ? "" : ",",
                    field, text, !optional && version == OpenApiVersion::kV3 ? R"("default":"",)" : "");
    if (!optional) required += fmt::format(R"({}"{}")", required.empty() ? "" : ",", field);
  }
  return fmt::format(
      R"({{"description":"What the server is and how it was built.","properties":{{{}}},"required":[{}],"type":"object"}})",
      properties, required);
}

}  // namespace keelson::api
