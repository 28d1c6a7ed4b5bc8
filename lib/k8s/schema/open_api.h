// OpenAPI schemas of custom resources, in the form that lib/api/openapi uses for built-in types.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lib/api/openapi/openapi.h"
#include "lib/api/proto/apiextensions_v1.pb.h"

namespace keelson::k8s {

struct PublishedSchema {
  std::string name;  // com.example.stable.v1.CronTab
  std::string json;  // the schema
};

// The schemas of a version: the kind, and its list; nothing for a version that does not exist. They refer to ObjectMeta
// and ListMeta by the names of built-in types. Version 2 of OpenAPI leaves out what it cannot say, and
// defaults. Slow: keep the result.
std::vector<PublishedSchema> PublishSchemas(
    const api::apiextensions::v1::CustomResourceDefinition& definition, std::string_view version,
    api::OpenApiVersion open_api);

// The name under which a kind is published: group example.com, version v1, kind Foo -> com.example.v1.Foo.
std::string PublishedName(std::string_view group, std::string_view version, std::string_view kind);

}  // namespace keelson::k8s
