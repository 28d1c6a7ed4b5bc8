#include "kubelet/certificate/json_answer.h"

namespace keelson::kubelet {

namespace {

constexpr std::chrono::seconds kTimeout(30);

Result<json::object> ParseObject(const client::ApiRequest& request, const client::ApiResponse& response) {
  boost::system::error_code failed;
  json::value parsed = json::parse(response.body, failed);
  if (failed || !parsed.is_object()) {
    return Error(Code::kInternal, "the API server's answer to " + request.target + " is no JSON object");
  }
  return std::move(parsed.get_object());
}

}  // namespace

Result<json::object> AskJson(client::Transport& transport, client::ApiRequest request) {
  request.accept = request.content_type = "application/json";
  KEELSON_ASSIGN_OR_RETURN(client::ApiResponse answer, transport.Do(request, kTimeout, {}));
  auto object = ParseObject(request, answer);
  if (answer.status >= 200 && answer.status < 300) return object;
  std::string message = object ? Text(*object, "message") : "";
  if (message.empty()) message = "the server answered " + std::to_string(answer.status);
  return Error(CodeOf(answer.status, object ? Text(*object, "reason") : ""), message);
}

const json::object& Member(const json::object& object, const char* name) {
  static const json::object kNone;
  const json::value* member = object.if_contains(name);
  return member && member->is_object() ? member->get_object() : kNone;
}

std::string Text(const json::object& object, const char* name) {
  const json::value* member = object.if_contains(name);
  return member && member->is_string() ? std::string(member->get_string()) : "";
}

}  // namespace keelson::kubelet
