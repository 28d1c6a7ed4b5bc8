#include "lib/client/metadata_client.h"

#include "lib/api/codec/codec.h"
#include "lib/base/percent.h"
#include "lib/client/json_objects.h"
#include "lib/client/request.h"

namespace keelson::client {
namespace {

constexpr std::chrono::seconds kPatience{30};

Result<metav1::ObjectMeta> MetadataOf(const ApiResponse& response) {
  metav1::PartialObjectMetadata object;
  Result<> decoded = IsJson(response.body) ? api::DecodeJson(response.body, object)
                                           : api::DecodeProtobuf(response.body, object);
  if (!decoded) return Error(Code::kInternal, decoded.error().Wrap("reply of the API server").message());
  return std::move(*object.mutable_metadata());
}

}  // namespace

MetadataClient MetadataClient::With(std::stop_token stop) const {
  MetadataClient copy(api_.With(stop));
  copy.stop_ = std::move(stop);
  return copy;
}

Result<metav1::ObjectMeta> MetadataClient::Get(const api::ResourceInfo& info, std::string_view ns,
                                               std::string_view name) const {
  ApiRequest request;
  request.target = ResourcePath(info, ns, name, "");
  request.accept = kMetadataOnly;
  KEELSON_ASSIGN_OR_RETURN(ApiResponse response, Answered(api_.transport(), request, kPatience, stop_));
  return MetadataOf(response);
}

Result<std::vector<metav1::ObjectMeta>> MetadataClient::List(const api::ResourceInfo& info,
                                                             std::string_view ns) const {
  std::vector<metav1::ObjectMeta> out;
  KEELSON_RETURN_IF_ERROR(
      api_.ListEach(info, ns, {.metadata_only = true}, nullptr, [&](std::string_view raw) -> Result<> {
        metav1::PartialObjectMetadata object;
        KEELSON_RETURN_IF_ERROR(RestClient::DecodeInto(raw, object));
        out.push_back(std::move(*object.mutable_metadata()));
        return {};
      }));
  return out;
}

Result<metav1::ObjectMeta> MetadataClient::Patch(const api::ResourceInfo& info, std::string_view ns,
                                                 std::string_view name, PatchType type,
                                                 std::string body) const {
  ApiRequest request;
  request.method = "PATCH";
  request.target = ResourcePath(info, ns, name, "");
  request.accept = kMetadataOnly;
  request.content_type = ContentTypeOf(type);
  request.body = std::move(body);
  KEELSON_ASSIGN_OR_RETURN(ApiResponse response, Answered(api_.transport(), request, kPatience, stop_));
  return MetadataOf(response);
}

Result<> MetadataClient::Delete(const api::ResourceInfo& info, std::string_view ns, std::string_view name,
                                const DeleteOptions& options) const {
  metav1::DeleteOptions body;
  if (options.grace_period_seconds) body.set_grace_period_seconds(*options.grace_period_seconds);
  if (!options.propagation_policy.empty()) body.set_propagation_policy(options.propagation_policy);
  if (!options.uid.empty()) body.mutable_preconditions()->set_uid(options.uid);
  if (!options.resource_version.empty()) {
    body.mutable_preconditions()->set_resource_version(options.resource_version);
  }
  ApiRequest request;
  request.method = "DELETE";
  request.target = ResourcePath(info, ns, name, "");
  request.accept = kMetadataOnly;
  // Servers of custom resources need not read protobuf.
  request.content_type = "application/json";
  request.body = api::EncodeJson(body, {"", "v1", "DeleteOptions"});
  KEELSON_RETURN_IF_ERROR(Answered(api_.transport(), request, kPatience, stop_));
  return {};
}

Result<std::unique_ptr<ApiStream>> MetadataClient::Watch(const api::ResourceInfo& info,
                                                         std::string_view resource_version) const {
  ApiRequest request;
  request.target = ResourcePath(info, "", "", "") +
                   "?watch=true&allowWatchBookmarks=true&resourceVersion=" + PercentEncode(resource_version) +
                   "&timeoutSeconds=" + std::to_string(WatchTimeoutSeconds());
  request.accept = kMetadataOnly;
  return api_.transport().Open(request, stop_);
}

}  // namespace keelson::client
