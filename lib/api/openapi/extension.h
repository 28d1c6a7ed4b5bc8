// OpenAPI documents of version 2 of extension API servers, and how they join the document of the server that aggregates
// them (kube-openapi's pkg/aggregator).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lib/api/openapi/custom.h"

namespace keelson::api {

// What a document says below a path: {"paths":{...},"definitions":{...}}, with the definitions that these paths refer to.
// Shared parameters stand where they are used. kInvalid for text that is no such document, or has parts that the protobuf
// form cannot carry. `prefix`: "/apis/wardle.example.com/v1alpha1".
Result<std::string> CutOpenApiV2(std::string_view document, std::string_view prefix);

// What such parts add to this server's document, in its two forms.
struct OpenApiAddition {
  OpenApiFragment json;
  std::string protobuf;
};

// Joins parts that CutOpenApiV2() made. A path belongs to the first part that has it. A definition that this server or
// an earlier part has too is shared if both describe the same fields; otherwise the later one becomes NAME_v2, NAME_v3
// and so on. Slow.
OpenApiAddition MergeOpenApiV2(const std::vector<std::string>& parts);

}  // namespace keelson::api
