#include "lib/client/request.h"

#include <random>

#include "lib/api/codec/codec.h"
#include "lib/api/meta.h"
#include "lib/base/percent.h"

namespace keelson::client {

std::string ResourcePath(const api::ResourceInfo& info, std::string_view ns, std::string_view name,
                         std::string_view subresource) {
  std::string path = info.group.empty() ? "/api/" : "/apis/" + std::string(info.group) + "/";
  path += info.version;
  if (info.namespaced && !ns.empty()) {
    path += "/namespaces/";
    path += PercentEncode(ns);
  }
  path += '/';
  path += info.resource;
  for (std::string_view part : {name, subresource}) {
    if (part.empty()) continue;
    path += '/';
    path += PercentEncode(part);
  }
  return path;
}

std::string_view ContentTypeOf(PatchType type) {
  switch (type) {
    case PatchType::kJson:
      return "application/json-patch+json";
    case PatchType::kMerge:
      return "application/merge-patch+json";
    case PatchType::kStrategicMerge:
      break;
  }
  return "application/strategic-merge-patch+json";
}

Error ErrorOf(const ApiResponse& response) {
  metav1::Status status;
  api::TypeMeta type;
  if (Result<api::Envelope> envelope = api::OpenEnvelope(response.body);
      envelope && envelope->type_meta.kind == "Status") {
    if (api::DecodeRaw(envelope->raw, status)) return api::FromStatus(status);
  } else if (response.body.starts_with('{') && api::DecodeJson(response.body, status, nullptr, &type) &&
             type.kind == "Status" && status.code() != 0) {
    return api::FromStatus(status);
  }
  // From a proxy, or a server too busy to negotiate: the text is all there is.
  std::string text = response.body.substr(0, 512);
  if (text.empty()) text = "the server answered with status " + std::to_string(response.status);
  return Error(CodeOf(response.status, ""), std::move(text));
}

Result<ApiResponse> Answered(Transport& transport, const ApiRequest& request,
                             std::chrono::milliseconds timeout, std::stop_token stop) {
  KEELSON_ASSIGN_OR_RETURN(ApiResponse response, transport.Do(request, timeout, std::move(stop)));
  if (response.status < 200 || response.status > 299) return ErrorOf(response);
  return response;
}

int WatchTimeoutSeconds() {
  thread_local std::minstd_rand random(std::random_device{}());
  return std::uniform_int_distribution<int>(300, 600)(random);
}

}  // namespace keelson::client
