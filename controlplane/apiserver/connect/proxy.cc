// pods/proxy, services/proxy and nodes/proxy.
#include <algorithm>
#include <optional>
#include <random>

#include <fmt/format.h>

#include "controlplane/apiserver/connect/connect.h"
#include "controlplane/apiserver/connect/link_rewriter.h"
#include "controlplane/apiserver/endpoints/forwarding.h"
#include "controlplane/apiserver/webhook/service_resolver.h"
#include "lib/base/ip.h"
#include "lib/base/text.h"
#include "lib/http/streaming/streaming.h"

namespace keelson::apiserver {
namespace {

// Headers between client and API server only.
constexpr std::string_view kClientOnly[] = {"Host", "Authorization", "Expect", "X-Forwarded-Uri"};
constexpr std::string_view kClientOnlyPrefixes[] = {"Impersonate-", "X-Remote-"};
// A proxied page has our origin, so it must not relax CORS.
constexpr std::string_view kCors[] = {"Access-Control-Allow-Credentials", "Access-Control-Allow-Headers",
                                      "Access-Control-Allow-Methods", "Access-Control-Allow-Origin"};

template <size_t N>
bool IsOneOf(std::string_view name, const std::string_view (&names)[N]) {
  return std::any_of(std::begin(names), std::end(names),
                     [&](std::string_view one) { return EqualsIgnoreCase(name, one); });
}

bool IsHtml(const http::Headers& headers) {
  std::string_view type = headers.Get("Content-Type");
  type = type.substr(0, type.find(';'));
  while (!type.empty() && type.back() == ' ') type.remove_suffix(1);
  return type == "text/html" && !headers.Has("Content-Encoding");
}

// "https:name:port", "name:port" or "name".
struct ProxyName {
  std::string scheme = "http", name, port;
};
Result<ProxyName> ParseProxyName(std::string_view resource, std::string_view text) {
  ProxyName out;
  std::vector<std::string> parts;
  for (std::string_view rest = text;;) {
    size_t colon = std::min(rest.find(':'), rest.size());
    parts.emplace_back(rest.substr(0, colon));
    if (colon == rest.size()) break;
    rest.remove_prefix(colon + 1);
  }
  const size_t name = parts.size() == 3 ? 1 : 0;
  const bool scheme = name == 0 || parts[0].empty() || parts[0] == "http" || parts[0] == "https";
  if (parts.size() > 3 || !scheme || parts[name].empty()) {
    return Error(Code::kBadRequest,
                 fmt::format("invalid {} request \"{}\"", resource == "pods" ? "pod" : "service", text));
  }
  if (name == 1 && !parts[0].empty()) out.scheme = parts[0];
  out.name = parts[name];
  if (parts.size() > name + 1) out.port = parts[name + 1];
  return out;
}

// Loopback, link-local and multicast addresses would reach hosts other than the pod.
bool MayBeProxied(const std::string& text) {
  Result<IpAddress> address = IpAddress::Parse(text);
  return address && !address->IsUnspecified() && !address->IsLoopback() && !address->IsLinkLocal() &&
         !address->IsMulticast();
}

// Selects a random endpoint.
template <typename T>
const T& Pick(const std::vector<T>& some) {
  static thread_local std::minstd_rand random(std::random_device{}());
  return some[std::uniform_int_distribution<size_t>(0, some.size() - 1)(random)];
}

// Makes links in a response lead back to the proxy.
class PageRewriter : public ResponseRewriter {
 public:
  explicit PageRewriter(ProxyPlace place) : place_(std::move(place)) {}
  void OnHead(http::Headers& headers) override {
    for (const std::string_view name : kCors) headers.Remove(name);
    if (headers.Has("Location")) {
      headers.Set("Location", RewriteLink(place_, headers.Get("Location")));
    } else if (IsHtml(headers)) {
      html_.emplace(place_);
    }
  }
  std::string OnBody(std::string_view bytes) override {
    return html_ ? html_->Feed(bytes) : std::string(bytes);
  }
  std::string OnEnd() override { return html_ ? html_->Finish() : ""; }

 private:
  const ProxyPlace place_;
  std::optional<HtmlRewriter> html_;
};

// The request as the proxied server gets it.
http::ClientRequest Outgoing(const http::ServerRequest& request, std::string target) {
  http::ClientRequest out;
  out.method = request.method;
  out.target = std::move(target);
  for (const auto& [name, value] : request.headers) {
    // Pages have to be read to be rewritten.
    bool ours = IsHopHeader(name) || IsOneOf(name, kClientOnly) || EqualsIgnoreCase(name, "Accept-Encoding");
    for (std::string_view prefix : kClientOnlyPrefixes) {
      ours = ours || EqualsIgnoreCase(std::string_view(name).substr(0, prefix.size()), prefix);
    }
    if (!ours) out.headers.Add(name, value);
  }
  out.headers.Set("X-Forwarded-Uri", request.path);
  const std::string& from = request.remote_address;
  out.headers.Add("X-Forwarded-For", from.substr(0, from.rfind(':')));
  out.body = request.body;
  out.body_stream = request.body_stream;
  const std::string_view length = request.headers.Get("Content-Length");
  if (out.body_stream && !length.empty()) out.headers.Add("Content-Length", std::string(length));
  return out;
}

// The path as sent, still encoded, without its first `count` segments: /api/v1/namespaces/NS/pods/NAME/proxy
// has seven.
std::string AfterSegments(std::string_view raw_path, int count) {
  size_t at = 0;
  for (int i = 0; i < count && at != std::string_view::npos; ++i) at = raw_path.find('/', at + 1);
  return at == std::string_view::npos ? "" : std::string(raw_path.substr(at));
}

}  // namespace

Result<std::string> ConnectHandler::PodUrl(const Context& context) {
  KEELSON_ASSIGN_OR_RETURN(ProxyName name, ParseProxyName("pods", context.info.name));
  KEELSON_ASSIGN_OR_RETURN(std::shared_ptr<const corev1::Pod> pod, GetPod(context.info.ns, name.name));
  int32_t port = 0;
  if (name.port.empty()) {
    for (const corev1::Container& container : pod->spec().containers()) {
      if (port == 0 && container.ports_size() > 0) port = container.ports(0).container_port();
    }
  } else {
    port = std::atoi(name.port.c_str());
    for (const corev1::Container& container : pod->spec().containers()) {
      for (const corev1::ContainerPort& one : container.ports()) {
        if (one.name() == name.port) port = one.container_port();
      }
    }
  }
  if (!MayBeProxied(pod->status().pod_ip())) return Error(Code::kBadRequest, "address not allowed");
  return name.scheme + "://" + EndpointAddress{pod->status().pod_ip(), port == 0 ? 80 : port}.HostPort();
}

Result<std::string> ConnectHandler::ServiceUrl(const Context& context) {
  KEELSON_ASSIGN_OR_RETURN(ProxyName name, ParseProxyName("services", context.info.name));
  KEELSON_ASSIGN_OR_RETURN(registry::ObjectPtr object,
                           registry_.Get(api::ResourceOf<corev1::Service>(), context.info.ns, name.name));
  auto service = std::static_pointer_cast<const corev1::Service>(object->Decode());
  // The Service's port by name or number; EndpointSlices use the name.
  std::string port_name;
  bool found = name.port.empty() && service->spec().ports_size() == 1;
  if (found) port_name = service->spec().ports(0).name();
  for (const corev1::ServicePort& port : service->spec().ports()) {
    if (found || (port.name() != name.port && std::to_string(port.port()) != name.port)) continue;
    port_name = port.name();
    found = true;
  }
  if (!found) {
    return Error(Code::kUnavailable,
                 fmt::format("no service port \"{}\" found for service \"{}\"", name.port, name.name));
  }
  std::vector<std::string> hosts;
  for (const EndpointAddress& one :
       ReadyEndpoints(registry_.store(), context.info.ns, name.name, port_name)) {
    if (MayBeProxied(one.ip)) hosts.push_back(one.HostPort());
  }
  if (!hosts.empty()) return name.scheme + "://" + Pick(hosts);
  return Error(Code::kUnavailable, fmt::format("no endpoints available for service \"{}\"", name.name));
}

Result<bool> ConnectHandler::Proxy(const std::shared_ptr<Context>& context, std::function<void()> done) {
  KEELSON_ASSIGN_OR_RETURN(const http::Query admitted, Admit(*context));
  const RequestInfo& info = context->info;
  const std::string path = info.proxy_path.empty() ? "" : "/" + info.proxy_path;
  if (admitted.Get("path") != path) {
    return Error(Code::kInternal,
                 "Internal error occurred: admission has changed the path of a proxy request");
  }
  std::string host;
  std::shared_ptr<http::Client> client;
  if (info.resource == "nodes") {
    KEELSON_ASSIGN_OR_RETURN(client, clients_.Kubelet(info.name.substr(0, info.name.find(':'))));
  } else {
    Result<std::string> url = info.resource == "pods" ? PodUrl(*context) : ServiceUrl(*context);
    if (!url) return url.error();
    host = url->substr(url->find("://") + 3);
    KEELSON_ASSIGN_OR_RETURN(client, clients_.Plain(*url));
  }
  const http::ServerRequest& request = *context->request;
  std::string target = AfterSegments(request.raw_path, info.ns.empty() ? 5 : 7);
  const std::string query = request.raw_query.empty() ? "" : "?" + request.raw_query;
  if (http::IsUpgradeRequest(request)) {
    context->status = 101;
    http::ProxyUpgrade(request, context->writer, *client, (target.empty() ? "/" : target) + query, {});
    return true;
  }
  if (target.empty() && (request.method == "GET" || request.method == "HEAD")) {
    // Redirect to a trailing slash, so that relative links work.
    context->status = 301;
    context->writer->Reply(301, {{"Location", request.raw_path + "/" + query}}, "");
    return true;
  }
  ProxyPlace place{request.raw_path.substr(0, request.raw_path.size() - target.size()), std::move(host),
                   std::string(request.headers.Get("Host"))};
  Forwarding::Options options;
  options.reject_redirects = false;
  options.status_errors = true;
  options.rewriter = std::make_unique<PageRewriter>(std::move(place));
  options.done = [completions = completions_, done = std::move(done)] { completions->Run(done); };
  std::make_shared<Forwarding>(context, std::move(client), std::move(options))
      ->Start(Outgoing(request, (target.empty() ? "/" : target) + query));
  return false;
}

}  // namespace keelson::apiserver
