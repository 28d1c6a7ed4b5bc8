// Internal to lib/api: the parts that OpenAPI documents are put together from.
#pragma once

#include <functional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/api/openapi/openapi.h"
#include "lib/api/scheme.h"

namespace keelson::api {

enum class OpenApiVersion { kV2, kV3 };

// The schema of one type, as JSON.
std::string SchemaJson(const Descriptor* type, OpenApiVersion version);
// `type` and all types that its schema refers to.
void AddReferencedTypes(const Descriptor* type, std::set<const Descriptor*>& types);
// `{"$ref":"#/definitions/..."}`
std::string SchemaRef(const Descriptor* type, OpenApiVersion version);
// The same for a schema that no message describes.
std::string SchemaRef(std::string_view name, OpenApiVersion version);
// The value of x-kubernetes-unions, as JSON; empty for types that are no unions.
std::string UnionsJson(const Descriptor* type);
// The values of a closed string whose annotations name none.
std::span<const std::string_view> ClosedValues(const google::protobuf::FieldDescriptor* field);

// "rbac.authorization.k8s.io" -> "RbacAuthorization", "" -> "Core": what names of operations contain.
std::string OpenApiGroupName(std::string_view group);
// "rbacAuthorization" or, with a version, "rbacAuthorization_v1": how operations are grouped.
std::string OpenApiTag(std::string_view group, std::string_view version = {});

using PathVisitor = std::function<void(const std::string& path, const std::string& json)>;

inline bool IsServed(const OpenApiFilter& served, const ResourceInfo& info) {
  return !served || served(info);
}

// Calls with each path and its JSON of the resources in a group and version, discovery included.
void ForEachPath(std::string_view group, std::string_view version, OpenApiVersion form,
                 const OpenApiFilter& served, const PathVisitor& visit);
// Types that the operations of a group and version mention.
std::set<const Descriptor*> TypesOf(std::string_view group, std::string_view version,
                                    const OpenApiFilter& served);

// What a server answers beside its resources: discovery of groups, its version, its tokens' issuer.
struct OpenApiPlace {
  std::string document;  // of version 3: "apis/apps"
  std::string path;      // "/apis/apps/"
  std::string operation, tag, description;
  const Descriptor* reply;                     // null: `named_reply`, or else text
  std::string_view named_reply;                // a schema of NamedSchemas
  std::span<const std::string_view> produces;  // media types
};
std::vector<OpenApiPlace> OpenApiPlaces(const OpenApiFilter& served);
std::string PlaceJson(const OpenApiPlace& place, OpenApiVersion version);
// Schemas of replies that no message describes, by name.
std::string NamedSchema(std::string_view name, OpenApiVersion version);
inline constexpr std::string_view kVersionInfoSchema = "io.k8s.apimachinery.pkg.version.Info";

// How a client says who it is, as the documents declare it.
inline constexpr std::string_view kSecurityScheme =
    R"({"BearerToken":{"description":"A bearer token: Bearer TOKEN.","in":"header","name":"authorization","type":"apiKey"}})";

// A schema or a path item of version 2 in gnostic's protobuf form.
std::string GnosticSchema(std::string_view json);
std::string GnosticPathItem(std::string_view json);
// Members `security` and `securityDefinitions` of a document, of which the second is given.
std::string GnosticSecurity(std::string_view definitions);
// A whole document of version 3 in that form.
std::string GnosticDocumentV3(std::string_view json);

}  // namespace keelson::api
