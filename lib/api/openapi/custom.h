// What custom resources add to OpenAPI documents: operations, in the shapes of apiextensions-apiserver's
// pkg/controller/openapi/builder, and schemas, which the caller brings. The parts are made one by one, so that a change
// of a definition costs no more than its own part.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/api/openapi/openapi.h"

namespace keelson::api {

// A served version of a custom resource.
struct OpenApiCustomResource {
  std::string group, version, plural, kind;
  bool namespaced = false, has_status = false, has_scale = false;
  // Names and JSON: the kind first, then its list. They fit the version of OpenAPI that they are used for.
  std::vector<std::pair<std::string, std::string>> schemas;
};

// Members of a document's paths and of its schemas, as JSON without braces: "name":{...},"name":{...}
struct OpenApiFragment {
  std::string paths, schemas;
};
OpenApiFragment CustomOpenApiJson(const OpenApiCustomResource& resource, OpenApiVersion version);
// The same in gnostic's protobuf form: to be appended to a document.
std::string CustomOpenApiProtobuf(const OpenApiCustomResource& resource, OpenApiVersion version);

// The document of version 3 that takes custom resources: of a group and version that may be built in or not.
// `has_scale`: of one of them. Depends on `document` only if that is built in.
OpenApiParts OpenApiV3PartsForCustom(std::string_view document, bool has_scale,
                                     const OpenApiFilter& served = {});
// That document, without custom resources, in gnostic's protobuf form.
std::string OpenApiV3ProtobufForCustom(std::string_view document, bool has_scale,
                                       const OpenApiFilter& served = {});

}  // namespace keelson::api
