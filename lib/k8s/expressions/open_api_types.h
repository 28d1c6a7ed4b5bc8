// Types for expressions from OpenAPI documents of version 3, for type checking: what a server publishes of built-in
// kinds, of custom resources and of extension API servers alike (k8s.io/apiserver/pkg/cel/common and
// k8s.io/apiserver/pkg/cel/openapi/resolver).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/error.h"
#include "lib/cel/types/decl_type.h"

namespace keelson::k8s {

// A schema of more parts counts as unknown. Pods have about 1000.
inline constexpr size_t kMostTypeParts = 50'000;

// The types of kinds in the order of `kinds`, from the document of their group version as JSON. Null for a kind that the
// document does not describe, or whose schema refers to parts that are missing. Object types are named by kind and
// field: Deployment.spec.template. Parts without a type stay hidden from expressions, as upstream's do; a schema that
// contains itself is an object without fields there. kInvalid: the text is no such document. Slow.
Result<std::vector<cel::DeclTypePtr>> TypesInOpenApi(std::string_view document, std::string_view group,
                                                     std::string_view version,
                                                     const std::vector<std::string>& kinds);

}  // namespace keelson::k8s
