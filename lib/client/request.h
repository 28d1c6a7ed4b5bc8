// Requests of the API's resources, and what their answers mean: the common part of RestClient and MetadataClient.
#pragma once

#include <chrono>
#include <stop_token>
#include <string>
#include <string_view>

#include "lib/api/scheme.h"
#include "lib/base/error.h"
#include "lib/client/rest.h"
#include "lib/client/transport.h"

namespace keelson::client {

// What asks a server for metadata; servers that cannot send it alone send whole objects, and some extension API servers
// send JSON.
inline constexpr std::string_view kMetadataOnly =
    "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,"
    "application/vnd.kubernetes.protobuf,application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,"
    "application/json";

// /apis/apps/v1/namespaces/NS/deployments/NAME/SUBRESOURCE. Empty parts are left out.
std::string ResourcePath(const api::ResourceInfo& info, std::string_view ns, std::string_view name,
                         std::string_view subresource);
std::string_view ContentTypeOf(PatchType type);
// The error of a response that is not 2xx: its Status in protobuf or JSON, or else its text.
Error ErrorOf(const ApiResponse& response);
// A 2xx response; others are errors.
Result<ApiResponse> Answered(Transport& transport, const ApiRequest& request,
                             std::chrono::milliseconds timeout, std::stop_token stop);
// Servers close watches after a while anyway. Randomised, so that clients do not reconnect all at once.
int WatchTimeoutSeconds();

}  // namespace keelson::client
