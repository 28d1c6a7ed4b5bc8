#include "tests/operator/webhooks.h"

#include <fmt/format.h>

#include "lib/base/base64.h"

namespace keelson::test_operator {
namespace {

namespace json = boost::json;

std::string Text(const json::object& object, const char* field) {
  const json::value* value = object.if_contains(field);
  return value && value->is_string() ? std::string(value->get_string()) : std::string();
}

json::object Convert(const json::object& request) {
  json::array converted;
  for (const json::value& object : request.at("objects").as_array()) {
    converted.push_back(ConvertFleet(object.as_object(), Text(request, "desiredAPIVersion")));
  }
  return {{"uid", request.at("uid")},
          {"convertedObjects", std::move(converted)},
          {"result", json::object{{"status", "Success"}}}};
}

// Fleets without a tag get one. The rules ask for v2, so that every fleet comes in v2.
json::object Mutate(const json::object& request) {
  json::object response = {{"uid", request.at("uid")}, {"allowed", true}};
  const json::object& spec = request.at("object").at("spec").as_object();
  const json::value* image = spec.if_contains("image");
  if (!image || !Text(image->as_object(), "tag").empty()) return response;
  response["patchType"] = "JSONPatch";
  response["patch"] = EncodeBase64(R"([{"op":"add","path":"/spec/image/tag","value":"latest"}])");
  return response;
}

json::object Validate(const json::object& request) {
  json::object response = {{"uid", request.at("uid")}, {"allowed", true}};
  const json::value* ships = request.at("object").at("spec").as_object().if_contains("ships");
  if (!ships || ships->as_int64() <= kMostShips) return response;
  response["allowed"] = false;
  response["status"] =
      json::object{{"message", fmt::format("a fleet has at most {} ships", kMostShips)}, {"code", 422}};
  return response;
}

}  // namespace

json::object ConvertFleet(json::object fleet, const std::string& api_version) {
  const bool from_v1 = Text(fleet, "apiVersion").ends_with("/v1"), to_v1 = api_version.ends_with("/v1");
  fleet["apiVersion"] = api_version;
  json::value* content = fleet.if_contains("spec");
  if (from_v1 == to_v1 || !content) return fleet;
  json::object& spec = content->as_object();
  auto rename = [&spec](const char* from, const char* to) {
    if (const json::value* value = spec.if_contains(from)) {
      spec[to] = json::value(*value);
      spec.erase(from);
    }
  };
  if (from_v1) {
    rename("size", "ships");
    const std::string ship = Text(spec, "ship");
    spec.erase("ship");
    if (!ship.empty()) {
      const size_t colon = ship.find(':');
      json::object image{{"name", ship.substr(0, colon)}};
      if (colon != std::string::npos) image["tag"] = ship.substr(colon + 1);
      spec["image"] = std::move(image);
    }
  } else {
    rename("ships", "size");
    if (const json::value* image = spec.if_contains("image")) {
      const std::string tag = Text(image->as_object(), "tag");
      const std::string ship = Text(image->as_object(), "name") + (tag.empty() ? "" : ":" + tag);
      spec["ship"] = ship;
      spec.erase("image");
    }
  }
  return fleet;
}

Result<std::unique_ptr<http::Server>> ServeWebhooks(uint16_t port, const std::string& certificate_file,
                                                    const std::string& key_file) {
  http::ServerOptions options;
  options.port = port;
  options.tls.emplace();
  options.tls->certificate_file = certificate_file;
  options.tls->key_file = key_file;
  return http::Server::Listen(std::move(options), [](auto request, auto writer) {
    const json::value review = json::parse(request->body);
    const json::object& asked = review.at("request").as_object();
    json::object response = request->path == "/convert"  ? Convert(asked)
                            : request->path == "/mutate" ? Mutate(asked)
                                                         : Validate(asked);
    const json::object out{{"kind", review.at("kind")},
                           {"apiVersion", review.at("apiVersion")},
                           {"response", std::move(response)}};
    writer->Reply(200, {{"Content-Type", "application/json"}}, json::serialize(out));
  });
}

}  // namespace keelson::test_operator
