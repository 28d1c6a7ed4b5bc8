// Internal to lib/api/openapi: the parts of OpenAPI documents.
#pragma once

#include <functional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/json/value.hpp>

#include "lib/api/openapi/openapi.h"
#include "lib/api/scheme.h"

namespace keelson::api {

class Sink;

// The schema of one type, as JSON.
std::string SchemaJson(const Descriptor* type, OpenApiVersion version);
// Adds `type` and all types that its schema refers to, directly or not.
void AddReferencedTypes(const Descriptor* type, std::set<const Descriptor*>& types);
// `{"$ref":"#/definitions/..."}`
std::string SchemaRef(const Descriptor* type, OpenApiVersion version);
// SchemaRef() for a schema that no message describes.
std::string SchemaRef(std::string_view name, OpenApiVersion version);
// The value of x-kubernetes-unions, as JSON; empty for types that are not unions.
std::string UnionsJson(const Descriptor* type);
// The values of a closed string that are not in the field's annotations.
std::span<const std::string_view> ClosedValues(const google::protobuf::FieldDescriptor* field);

// With the first letter in upper case.
std::string Capitalized(std::string_view word);
// "rbac.authorization.k8s.io" -> "RbacAuthorization", "" -> "Core": the group's name in operation ids.
std::string OpenApiGroupName(std::string_view group);
// The tag of operations: "rbacAuthorization" or, with a version, "rbacAuthorization_v1".
std::string OpenApiTag(std::string_view group, std::string_view version = {});

using PathVisitor = std::function<void(const std::string& path, const std::string& json)>;

inline bool IsServed(const OpenApiFilter& served, const ResourceInfo& info) {
  return !served || served(info);
}

// Calls `visit` with each path of a group and version and its path item as JSON, discovery included.
void ForEachPath(std::string_view group, std::string_view version, OpenApiVersion form,
                 const OpenApiFilter& served, const PathVisitor& visit);
// The types that the operations of a group and version refer to.
std::set<const Descriptor*> TypesOf(std::string_view group, std::string_view version,
                                    const OpenApiFilter& served);

// The types that the operations on custom resources refer to.
std::set<const Descriptor*> CustomOpenApiTypes(bool has_scale);
// A document of version 3 that has `more` types too. Of a group and version without built-in resources it is what
// custom resources fit into; empty for other documents that are not built in.
OpenApiParts OpenApiV3PartsWith(std::string_view document, const std::set<const Descriptor*>& more,
                                const OpenApiFilter& served);

// A path outside of resources: discovery of groups, the server's version, the token issuer.
struct OpenApiPlace {
  std::string document;  // in version 3: "apis/apps"
  std::string path;      // "/apis/apps/"
  std::string operation, tag, description;
  const Descriptor* reply;                     // null: `named_reply`, or text if that is empty too
  std::string_view named_reply;                // a name that NamedSchema() knows
  std::span<const std::string_view> produces;  // media types
};
std::vector<OpenApiPlace> OpenApiPlaces(const OpenApiFilter& served);
std::string PlaceJson(const OpenApiPlace& place, OpenApiVersion version);
// A schema of a reply that no message describes.
std::string NamedSchema(std::string_view name, OpenApiVersion version);
inline constexpr std::string_view kVersionInfoSchema = "io.k8s.apimachinery.pkg.version.Info";

// How clients authenticate, as declared in the documents.
inline constexpr std::string_view kSecurityScheme =
    R"({"BearerToken":{"description":"A bearer token: Bearer TOKEN.","in":"header","name":"authorization","type":"apiKey"}})";

// JSON of any depth that a schema can have (k8s::StructuralSchema::kMaxDepth); throws on malformed text.
boost::json::value ParseOpenApi(std::string_view json);

// Write a number of gnostic's protobuf form; nothing where `value` is no number.
void PutGnosticDouble(Sink& out, uint32_t field, const boost::json::value& value);
void PutGnosticInt(Sink& out, uint32_t field, const boost::json::value& value);

// Convert a schema or a path item of version 2 to gnostic's protobuf form.
std::string GnosticSchema(std::string_view json);
std::string GnosticPathItem(std::string_view json);
// Paths or schemas, by name, as JSON.
using OpenApiNamed = std::vector<std::pair<std::string, std::string>>;
// The part of a document of version 2 that has these paths and definitions. Parts that follow each other are one
// document.
std::string GnosticPartV2(const OpenApiNamed& paths, const OpenApiNamed& definitions);
// The same of version 3.
std::string GnosticPartV3(const OpenApiNamed& paths, const OpenApiNamed& schemas);
// The members `security` and `securityDefinitions` of a document, made from the second one.
std::string GnosticSecurity(std::string_view definitions);
// Converts a whole document of version 3 to gnostic's protobuf form.
std::string GnosticDocumentV3(std::string_view json);

}  // namespace keelson::api
