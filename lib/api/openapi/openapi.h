// OpenAPI documents of the served resources, derived from the descriptors; kubectl explain, apply and
// validation read them. Documents are large and each call builds them again: keep them, compressed.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/api/scheme.h"

namespace keelson::api {

enum class OpenApiVersion { kV2, kV3 };

// Whether the documents include a resource; null: all.
using OpenApiFilter = std::function<bool(const ResourceInfo&)>;

// A document in parts, between which custom resources fit (custom.h): paths between head and middle, schemas between
// middle and tail. Without them, the three are the document.
struct OpenApiParts {
  std::string head, middle, tail;
  bool has_paths = true;  // a comma has to stand before the next path; before a schema always

  std::string Joined() const { return head + middle + tail; }
};

// /openapi/v2 as application/json.
OpenApiParts OpenApiV2Parts(const OpenApiFilter& served = {});
std::string OpenApiV2Json(const OpenApiFilter& served = {});
// /openapi/v2 as application/com.github.proto-openapi.spec.v2.v1.0+protobuf (also spelled spec.v2@v1.0),
// the only form that client-go requests: openapi.v2.Document of google/gnostic.
std::string OpenApiV2Protobuf(const OpenApiFilter& served = {});

// The documents below /openapi/v3/: "api/v1" and "apis/{group}/{version}", and those for discovery and the
// like: "api", "apis", "apis/{group}", "version".
std::vector<std::string> OpenApiV3Paths(const OpenApiFilter& served = {});
// One of these documents; empty when there is no such document.
OpenApiParts OpenApiV3Parts(std::string_view document, const OpenApiFilter& served = {});
std::string OpenApiV3Json(std::string_view document, const OpenApiFilter& served = {});
// The same document as openapi.v3.Document of google/gnostic:
// application/com.github.proto-openapi.spec.v3.v1.0+protobuf.
std::string OpenApiV3Protobuf(std::string_view document, const OpenApiFilter& served = {});

// io.k8s.api.apps.v1.Deployment, io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta, ...
std::string OpenApiName(const Descriptor* descriptor);

}  // namespace keelson::api
