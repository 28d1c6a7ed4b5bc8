#include "lib/api/openapi.h"

#include <map>

#include <fmt/format.h>

#include "lib/api/openapi_parts.h"
#include "lib/api/wire.h"

namespace keelson::api {
namespace {

constexpr std::string_view kInfo = R"({"title":"Kubernetes","version":"v1.36.0"})";

using GroupVersions = std::set<std::pair<std::string_view, std::string_view>>;

GroupVersions ServedGroupVersions() {
  GroupVersions served;
  for (const ResourceInfo& info : Resources()) served.emplace(info.group, info.version);
  return served;
}

// In the order of their names, which is that of documents.
std::map<std::string, const Descriptor*> ByName(const std::set<const Descriptor*>& types) {
  std::map<std::string, const Descriptor*> named;
  for (const Descriptor* type : types) named.emplace(OpenApiName(type), type);
  return named;
}

std::map<std::string, const Descriptor*> AllTypes() {
  std::set<const Descriptor*> types;
  for (const auto& [group, version] : ServedGroupVersions()) types.merge(TypesOf(group, version));
  return ByName(types);
}

// Members of a JSON object, one after the other.
void AddMember(std::string& out, std::string_view name, std::string_view json) {
  if (out.back() != '{') out += ',';
  out.append("\"").append(name).append("\":").append(json);
}

}  // namespace

std::string OpenApiV2Json() {
  std::string out = fmt::format(R"({{"swagger":"2.0","info":{},"paths":{{)", kInfo);
  for (const auto& [group, version] : ServedGroupVersions()) {
    ForEachPath(group, version, OpenApiVersion::kV2,
                [&](const std::string& path, const std::string& json) { AddMember(out, path, json); });
  }
  out += "},\"definitions\":{";
  for (const auto& [name, type] : AllTypes()) AddMember(out, name, SchemaJson(type, OpenApiVersion::kV2));
  return out + "}}";
}

std::string OpenApiV2Protobuf() {
  std::string out;
  Sink sink(out);
  wire::PutBytes(sink, 1, "2.0");
  wire::Open info = wire::Begin(sink, 2);
  wire::PutBytes(sink, 1, "Kubernetes");
  wire::PutBytes(sink, 2, "v1.36.0");
  wire::End(sink, info);
  auto named = [&](uint32_t field, std::string_view name, std::string_view value) {
    wire::Open entry = wire::Begin(sink, field);
    wire::PutBytes(sink, 1, name);
    wire::PutBytes(sink, 2, value);
    wire::End(sink, entry);
  };
  wire::Open paths = wire::Begin(sink, 8);
  for (const auto& [group, version] : ServedGroupVersions()) {
    ForEachPath(group, version, OpenApiVersion::kV2, [&](const std::string& path, const std::string& json) {
      named(2, path, GnosticPathItem(json));
    });
  }
  wire::End(sink, paths);
  wire::Open definitions = wire::Begin(sink, 9);
  for (const auto& [name, type] : AllTypes())
    named(1, name, GnosticSchema(SchemaJson(type, OpenApiVersion::kV2)));
  wire::End(sink, definitions);
  sink.Finish();
  return out;
}

std::string OpenApiV3Json(std::string_view group, std::string_view version) {
  std::set<const Descriptor*> types = TypesOf(group, version);
  if (types.empty()) return "";
  std::string out = fmt::format(R"({{"openapi":"3.0.0","info":{},"paths":{{)", kInfo);
  ForEachPath(group, version, OpenApiVersion::kV3,
              [&](const std::string& path, const std::string& json) { AddMember(out, path, json); });
  out += "},\"components\":{\"schemas\":{";
  for (const auto& [name, type] : ByName(types)) AddMember(out, name, SchemaJson(type, OpenApiVersion::kV3));
  return out + "}}}";
}

std::string OpenApiV3Protobuf(std::string_view group, std::string_view version) {
  std::string json = OpenApiV3Json(group, version);
  return json.empty() ? "" : GnosticDocumentV3(json);
}

std::vector<std::string> OpenApiV3Paths() {
  std::vector<std::string> paths;
  for (const auto& [group, version] : ServedGroupVersions())
    paths.push_back(group.empty() ? fmt::format("api/{}", version)
                                  : fmt::format("apis/{}/{}", group, version));
  return paths;
}

}  // namespace keelson::api
