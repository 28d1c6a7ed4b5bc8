#include "controlplane/controllers/common/json_api.h"

#include <cctype>

#include "lib/api/codec/codec.h"
#include "lib/api/meta.h"

namespace keelson::controllers {
namespace {

constexpr char kJson[] = "application/json";
constexpr char kNoSuchPath[] = "the server could not find the requested resource";
constexpr std::chrono::seconds kPatience{30};

Error ErrorOf(const client::ApiResponse& response) {
  metav1::Status status;
  api::TypeMeta type;
  if (api::DecodeJson(response.body, status, nullptr, &type) && type.kind == "Status" &&
      !status.message().empty()) {
    return api::FromStatus(status);
  }
  const Code code = CodeOf(response.status, "");
  if (code == Code::kNotFound) return Error(code, kNoSuchPath);
  std::string text = response.body.substr(0, 512);
  if (text.empty()) text = "the server answered with status " + std::to_string(response.status);
  return Error(code, std::move(text));
}

}  // namespace

Result<std::string> Call(const client::RestClient& api, std::string method, std::string target,
                         std::string body) {
  client::ApiRequest request;
  request.method = std::move(method);
  request.target = std::move(target);
  request.accept = kJson;
  if (!body.empty()) request.content_type = kJson;
  request.body = std::move(body);
  KEELSON_ASSIGN_OR_RETURN(client::ApiResponse response, api.transport().Do(request, kPatience, {}));
  if (response.status < 200 || response.status > 299) return ErrorOf(response);
  return std::move(response.body);
}

bool IsNoSuchPath(const Error& error) {
  return error.Is(Code::kNotFound) && error.message().find(kNoSuchPath) != std::string::npos;
}

Error NoSuchPath(const std::string& what) {
  return Error(Code::kNotFound, std::string(kNoSuchPath) + " (get " + what + ")");
}

}  // namespace keelson::controllers
