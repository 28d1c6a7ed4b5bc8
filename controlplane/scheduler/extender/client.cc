#include "controlplane/scheduler/extender/client.h"

#include <algorithm>

#include <fmt/format.h>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "lib/api/codec/codec.h"

namespace keelson::scheduler {

namespace json = boost::json;

namespace {

bool SameInAnyCase(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [&](char x, char y) { return lower(x) == lower(y); });
}

json::value Object(const google::protobuf::Message& message) {
  return json::parse(api::EncodeJson(message, api::GvkOf(message.GetDescriptor())));
}

bool AsksFor(const corev1::PodSpec& spec, const std::vector<std::string>& resources) {
  const auto asks = [&](const auto& containers) {
    for (const corev1::Container& container : containers) {
      for (const std::string& name : resources) {
        if (container.resources().requests().contains(name) ||
            container.resources().limits().contains(name)) {
          return true;
        }
      }
    }
    return false;
  };
  return asks(spec.containers()) || asks(spec.init_containers());
}

}  // namespace

const json::value* Field(const json::value& value, std::string_view name) {
  if (!value.is_object()) return nullptr;
  const json::object& object = value.get_object();
  const json::value* found = object.if_contains(name);
  for (auto it = object.begin(); !found && it != object.end(); ++it) {
    if (SameInAnyCase(it->key(), name)) found = &it->value();
  }
  return found && !found->is_null() ? found : nullptr;
}

std::string TextField(const json::value& value, std::string_view name) {
  const json::value* found = Field(value, name);
  return found && found->is_string() ? std::string(found->get_string()) : "";
}

Result<std::unique_ptr<ExtenderClient>> ExtenderClient::Create(const ExtenderConfig& config,
                                                               ExtenderObjects objects,
                                                               std::stop_token stop) {
  const size_t host = config.url_prefix.find("://");
  if (host == std::string::npos) {
    return Error(Code::kInvalid, fmt::format("extender urlPrefix \"{}\": must be a URL", config.url_prefix));
  }
  std::unique_ptr<ExtenderClient> out(new ExtenderClient(config, std::move(objects), std::move(stop)));
  const size_t slash = std::min(config.url_prefix.find('/', host + 3), config.url_prefix.size());
  out->path_ = config.url_prefix.substr(slash);
  while (out->path_.ends_with('/')) out->path_.pop_back();
  http::ClientOptions options;
  options.base_url = config.url_prefix.substr(0, slash);
  options.tls.ca_pem = config.ca_pem;
  options.tls.certificate_pem = config.certificate_pem;
  options.tls.key_pem = config.key_pem;
  options.tls.server_name = config.server_name;
  options.tls.insecure_skip_verify = config.insecure;
  KEELSON_ASSIGN_OR_RETURN(out->client_, http::Client::Create(std::move(options)));
  return out;
}

bool ExtenderClient::IsInterested(const PodInfo& pod) const {
  if (config_.managed_resources.empty()) return true;
  const std::shared_ptr<const corev1::Pod> object = objects_.pod(pod);
  return object && AsksFor(object->spec(), config_.managed_resources);
}

Result<json::value> ExtenderClient::Call(const std::string& verb, const json::value& body) const {
  http::ClientRequest request;
  request.method = "POST";
  request.target = path_ + "/" + verb;
  request.headers.Add("Content-Type", "application/json");
  request.body = json::serialize(body);
  KEELSON_ASSIGN_OR_RETURN(const http::ClientResponse response, client_->Do(request, config_.timeout, stop_));
  if (response.status != 200) {
    return Error(Code::kUnavailable, fmt::format("failed {} with extender at URL {}/{}, code {}", verb,
                                                 config_.url_prefix, verb, response.status));
  }
  boost::system::error_code malformed;
  json::value answer = json::parse(response.body, malformed);
  if (malformed) {
    return Error(Code::kUnavailable, fmt::format("extender {}: {}", config_.url_prefix, malformed.message()));
  }
  if (std::string problem = TextField(answer, "error"); !problem.empty()) {
    return Error(Code::kUnavailable, std::move(problem));
  }
  return answer;
}

Result<json::value> ExtenderClient::PodObject(const PodInfo& pod) const {
  const std::shared_ptr<const corev1::Pod> object = objects_.pod(pod);
  if (!object) return Error(Code::kNotFound, fmt::format("pods \"{}\" not found", pod.name));
  return Object(*object);
}

Result<json::value> ExtenderClient::NodeArguments(const PodInfo& pod,
                                                  const std::vector<std::string_view>& nodes) const {
  json::object args{{"Nodes", nullptr}, {"NodeNames", nullptr}};
  KEELSON_ASSIGN_OR_RETURN(args["Pod"], PodObject(pod));
  if (config_.node_cache_capable) {
    args["NodeNames"] = json::array(nodes.begin(), nodes.end());
    return args;
  }
  json::array items;
  for (std::string_view name : nodes) {
    if (const auto node = objects_.node(name)) items.push_back(Object(*node));
  }
  args["Nodes"] = json::object{
      {"apiVersion", "v1"}, {"kind", "NodeList"}, {"metadata", json::object()}, {"items", std::move(items)}};
  return args;
}

}  // namespace keelson::scheduler
