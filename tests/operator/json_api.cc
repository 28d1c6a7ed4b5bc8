#include "tests/operator/json_api.h"

#include <chrono>
#include <csignal>

namespace keelson::test_operator {

namespace json = boost::json;

void Writes::Step(int step) const {
  if (step == die_at_) ::raise(SIGKILL);
}

Result<json::value> JsonApi::Send(const std::string& method, const std::string& path,
                                  const json::value* body) const {
  client::ApiRequest request;
  request.method = method;
  request.target = path;
  request.accept = "application/json";
  if (body) {
    request.content_type = "application/json";
    request.body = json::serialize(*body);
  }
  auto call = [&] { return transport_->Do(request, std::chrono::seconds(30), {}); };
  Result<client::ApiResponse> response = method == "GET" ? call() : writes_.Do(call);
  if (!response) return response.error();
  boost::system::error_code error;
  json::value parsed = json::parse(response->body, error);
  if (response->status < 300) return parsed;
  const json::object* status = parsed.if_object();
  auto text = [&](const char* field) {
    const json::value* value = status ? status->if_contains(field) : nullptr;
    return value && value->is_string() ? std::string(value->get_string()) : std::string();
  };
  return Error(CodeOf(response->status, text("reason")), method + " " + path + ": " + text("message"));
}

Result<json::value> JsonApi::Get(const std::string& path) const { return Send("GET", path, nullptr); }

Result<json::value> JsonApi::Create(const std::string& collection, const json::value& object) const {
  return Send("POST", collection, &object);
}

Result<json::value> JsonApi::Replace(const std::string& path, const json::value& object) const {
  return Send("PUT", path, &object);
}

Result<> JsonApi::Delete(const std::string& path) const {
  Result<json::value> deleted = Send("DELETE", path, nullptr);
  if (!deleted && !deleted.error().Is(Code::kNotFound)) return deleted.error();
  return {};
}

Result<> JsonApi::Put(const std::string& collection, const std::string& name, json::object object) const {
  Result<json::value> present = Get(collection + "/" + name);
  if (!present) {
    if (!present.error().Is(Code::kNotFound)) return present.error();
    Result<json::value> created = Create(collection, object);
    if (created) return {};
    if (!created.error().Is(Code::kAlreadyExists)) return created.error();
    KEELSON_ASSIGN_OR_RETURN(*present, Get(collection + "/" + name));
  }
  object["metadata"].as_object()["resourceVersion"] = present->at("metadata").at("resourceVersion");
  Result<json::value> replaced = Replace(collection + "/" + name, object);
  return replaced ? Result<>() : replaced.error();
}

Result<> JsonApi::Watch(const std::string& path, std::stop_token stop,
                        const std::function<void(const json::value& event)>& each) const {
  client::ApiRequest request;
  request.target = path;
  request.accept = "application/json";
  KEELSON_ASSIGN_OR_RETURN(std::unique_ptr<client::ApiStream> stream, transport_->Open(request, stop));
  std::string buffer;
  while (true) {
    KEELSON_ASSIGN_OR_RETURN(std::string bytes, stream->Read(stop, std::chrono::minutes(5)));
    if (bytes.empty()) return {};
    buffer += bytes;
    for (size_t end; (end = buffer.find('\n')) != std::string::npos; buffer.erase(0, end + 1)) {
      each(json::parse(buffer.substr(0, end)));
    }
  }
}

}  // namespace keelson::test_operator
