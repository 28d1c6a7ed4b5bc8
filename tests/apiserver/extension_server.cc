#include "tests/apiserver/extension_server.h"

#include <cstdlib>

#include <fmt/format.h>
#include <boost/json.hpp>

#include "lib/base/text.h"

namespace keelson::apiserver {
namespace {

namespace json = boost::json;

constexpr char kJson[] = "application/json";
constexpr char kResources[] =
    R"({"kind":"APIResourceList","apiVersion":"v1","groupVersion":"wardle.example.com/v1alpha1",
  "resources":[{"name":"flunders","singularName":"flunder","namespaced":true,"kind":"Flunder","shortNames":["fl"],
  "verbs":["create","delete","get","list","watch"]}]})";
constexpr char kGroups[] = R"({"kind":"APIGroupList","apiVersion":"v1","groups":[{"name":"wardle.example.com",
  "versions":[{"groupVersion":"wardle.example.com/v1alpha1","version":"v1alpha1"}]}]})";
constexpr char kAggregated[] =
    R"({"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","metadata":{},
  "items":[{"metadata":{"name":"wardle.example.com"},"versions":[{"version":"v1alpha1","freshness":"Current",
  "resources":[{"resource":"flunders","scope":"Namespaced","singularResource":"flunder","shortNames":["fl"],
  "responseKind":{"group":"wardle.example.com","version":"v1alpha1","kind":"Flunder"},
  "verbs":["create","delete","get","list","watch"]}]}]}]})";
constexpr char kOpenApiIndex[] = R"({"paths":{"apis/wardle.example.com/v1alpha1":
  {"serverRelativeURL":"/openapi/v3/apis/wardle.example.com/v1alpha1?hash=F1"}}})";
constexpr char kOpenApi[] = R"({"openapi":"3.0.0","info":{"title":"wardle","version":"1"},
  "paths":{"/apis/wardle.example.com/v1alpha1/namespaces/{namespace}/flunders":{"get":{"x-kubernetes-action":"list",
  "x-kubernetes-group-version-kind":{"group":"wardle.example.com","version":"v1alpha1","kind":"Flunder"},"responses":{}}}},
  "components":{"schemas":{"com.example.wardle.v1alpha1.Flunder":{"type":"object","description":"A flunder is a fish.",
  "properties":{"spec":{"type":"object","description":"What it eats."}},
  "x-kubernetes-group-version-kind":[{"group":"wardle.example.com","version":"v1alpha1","kind":"Flunder"}]}}}})";

constexpr char kOpenApiV2[] = R"({"swagger":"2.0","info":{"title":"wardle","version":"1"},
  "paths":{"/apis/wardle.example.com/v1alpha1/flunders":{"get":{"description":"list flunders",
    "responses":{"200":{"description":"OK","schema":{"$ref":"#/definitions/com.example.wardle.v1alpha1.Flunder"}}}}},
    "/version/":{"get":{"responses":{}}}},
  "definitions":{"com.example.wardle.v1alpha1.Flunder":{"type":"object","description":"A flunder is a fish.",
    "properties":{"apiVersion":{"type":"string"},"kind":{"type":"string"},"spec":{"type":"object"},
      "metadata":{"$ref":"#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}},
    "x-kubernetes-group-version-kind":[{"group":"wardle.example.com","version":"v1alpha1","kind":"Flunder"}]},
  "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta":{"type":"object"}}})";

void Reply(http::ResponseWriter& writer, int status, std::string body, const std::string& type = kJson) {
  writer.Reply(status, {{"Content-Type", type}}, std::move(body));
}

void Refuse(http::ResponseWriter& writer, int status, const std::string& reason, const std::string& message) {
  Reply(
      writer, status,
      fmt::format(R"({{"kind":"Status","apiVersion":"v1","metadata":{{}},"status":"Failure","message":"{}",)"
                  R"("reason":"{}","code":{}}})",
                  message, reason, status));
}

}  // namespace

ExtensionServer::ExtensionServer(const std::string& proxy_ca_file, bool aggregated)
    : aggregated_(aggregated) {
  http::ServerOptions options;
  options.tls.emplace();
  options.tls->certificate_file = pki_.server_cert_file();
  options.tls->key_file = pki_.server_key_file();
  options.tls->client_ca_file = proxy_ca_file;
  options.max_body = 16u << 20;
  auto listening = http::Server::Listen(
      std::move(options), [this](auto request, auto writer) { Handle(*request, std::move(writer)); });
  if (!listening) abort();
  server_ = std::move(*listening);
  thread_ = std::jthread([this](std::stop_token stop) { (void)server_->Run(stop, {}); });
}

ExtensionServer::~ExtensionServer() { Stop(); }

void ExtensionServer::Stop() {
  thread_.request_stop();
  if (thread_.joinable()) thread_.join();
  MutexLock lock(mutex_);
  watchers_.clear();
  silent_.clear();
}

std::vector<std::string> ExtensionServer::Users() {
  MutexLock lock(mutex_);
  return std::exchange(users_, {});
}

bool ExtensionServer::leaked() const {
  MutexLock lock(mutex_);
  return leaked_;
}

std::string ExtensionServer::Discovery(const std::string& path, const Request& request,
                                       std::string& type) const {
  if (path == "/apis") {
    const bool wanted =
        request.headers.Get("Accept").find("as=APIGroupDiscoveryList") != std::string_view::npos;
    if (!aggregated_ || !wanted) return kGroups;
    type = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    return kAggregated;
  }
  if (path == fmt::format("/apis/{}/{}", kGroup, kVersion)) return kResources;
  if (path == "/openapi/v2") return kOpenApiV2;
  if (path == "/openapi/v3") return kOpenApiIndex;
  if (path == fmt::format("/openapi/v3/apis/{}/{}", kGroup, kVersion)) return kOpenApi;
  return "";
}

void ExtensionServer::Handle(const Request& request, const Writer& writer) {
  const std::string user(request.headers.Get("X-Remote-User"));
  if (!request.peer || request.peer->common_name != "front-proxy-client" || user.empty()) {
    return Refuse(*writer, 401, "Unauthorized", "Unauthorized");
  }
  std::string type = kJson;
  if (std::string document = Discovery(request.path, request, type); !document.empty()) {
    return Reply(*writer, 200, std::move(document), type);
  }
  const std::string root = fmt::format("/apis/{}/{}/", kGroup, kVersion);
  if (!request.path.starts_with(root)) return Refuse(*writer, 404, "NotFound", "no such path");
  {
    MutexLock lock(mutex_);
    users_.push_back(user + "|" + Join(request.headers.All("X-Remote-Group"), ","));
    leaked_ = leaked_ || request.headers.Has("Authorization") || request.headers.Has("Impersonate-User");
  }
  // [namespaces/NS/]flunders[/NAME]
  std::vector<std::string_view> parts = Split(std::string_view(request.path).substr(root.size()), '/');
  std::string ns;
  if (parts.size() >= 2 && parts[0] == "namespaces") {
    ns = parts[1];
    parts.erase(parts.begin(), parts.begin() + 2);
  }
  if (parts.empty() || parts[0] != "flunders") return Refuse(*writer, 404, "NotFound", "no such resource");
  HandleFlunders(request, writer, ns, parts.size() > 1 ? std::string(parts[1]) : "");
}

void ExtensionServer::Tell(const std::string& type, const std::string& object) {
  const auto event =
      std::make_shared<const std::string>(fmt::format("{{\"type\":\"{}\",\"object\":{}}}\n", type, object));
  std::erase_if(watchers_, [&](const Writer& one) { return !one->Write(event); });
}

void ExtensionServer::HandleFlunders(const Request& request, const Writer& writer, const std::string& ns,
                                     const std::string& name) {
  MutexLock lock(mutex_);
  if (name == kSilent) {
    silent_.push_back(writer);
    return;
  }
  if (request.method == "POST") {
    json::object object = json::parse(request.body).as_object();
    json::object& meta = object["metadata"].as_object();
    const std::string key = ns + "/" + std::string(meta.at("name").as_string());
    if (objects_.contains(key)) return Refuse(*writer, 409, "AlreadyExists", "flunder already exists");
    meta["namespace"] = ns;
    meta["resourceVersion"] = std::to_string(++revision_);
    meta["uid"] = fmt::format("00000000-0000-0000-0000-{:012}", revision_);
    const std::string text = json::serialize(object);
    objects_[key] = text;
    Tell("ADDED", text);
    return Reply(*writer, 201, text);
  }
  if (!name.empty()) {
    auto found = objects_.find(ns + "/" + name);
    if (found == objects_.end()) {
      return Refuse(*writer, 404, "NotFound", fmt::format("flunders.{} \\\"{}\\\" not found", kGroup, name));
    }
    if (request.method == "GET") return Reply(*writer, 200, found->second);
    if (request.method != "DELETE") return Refuse(*writer, 405, "MethodNotAllowed", "not supported");
    const std::string text = found->second;
    objects_.erase(found);
    Tell("DELETED", text);
    return Reply(*writer, 200, text);
  }
  if (request.method != "GET") return Refuse(*writer, 405, "MethodNotAllowed", "not supported");
  if (request.query.GetBool("watch")) {
    writer->Start(200, {{"Content-Type", kJson}});
    watchers_.push_back(writer);
    return;
  }
  std::string items;
  for (const auto& [key, text] : objects_) {
    if (ns.empty() || key.starts_with(ns + "/")) items += (items.empty() ? "" : ",") + text;
  }
  Reply(*writer, 200,
        fmt::format(R"({{"kind":"FlunderList","apiVersion":"{}/{}","metadata":{{"resourceVersion":"{}"}},)"
                    R"("items":[{}]}})",
                    kGroup, kVersion, revision_, items));
}

}  // namespace keelson::apiserver
