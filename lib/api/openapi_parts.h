// Internal to lib/api: the parts that OpenAPI documents are put together from.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <string_view>

#include "lib/api/scheme.h"

namespace keelson::api {

enum class OpenApiVersion { kV2, kV3 };

// The schema of one type, as JSON.
std::string SchemaJson(const Descriptor* type, OpenApiVersion version);
// `type` and all types that its schema refers to.
void AddReferencedTypes(const Descriptor* type, std::set<const Descriptor*>& types);
// `{"$ref":"#/definitions/..."}`
std::string SchemaRef(const Descriptor* type, OpenApiVersion version);

// Calls with each path and its JSON of the resources in a group and version.
void ForEachPath(std::string_view group, std::string_view version, OpenApiVersion form,
                 const std::function<void(const std::string& path, const std::string& json)>& visit);
// Types that the operations of a group and version mention.
std::set<const Descriptor*> TypesOf(std::string_view group, std::string_view version);

// A schema or a path item of version 2 in gnostic's protobuf form.
std::string GnosticSchema(std::string_view json);
std::string GnosticPathItem(std::string_view json);
// A whole document of version 3 in that form.
std::string GnosticDocumentV3(std::string_view json);

}  // namespace keelson::api
