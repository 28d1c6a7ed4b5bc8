#include "controlplane/apiserver/handlers/connect.h"

#include <condition_variable>

#include <fmt/format.h>

#include "controlplane/apiserver/handlers/response.h"
#include "lib/api/meta.h"
#include "lib/http/streaming.h"
#include "lib/http/websocket_writer.h"
#include "lib/k8s/pod_util.h"

namespace keelson::apiserver {
namespace {

constexpr std::chrono::seconds kConnectTimeout{30};
constexpr size_t kMaxQueued = 4u << 20;

Error BadRequest(std::string message) { return Error(Code::kBadRequest, std::move(message)); }

std::string ContainerNames(const corev1::Pod& pod) {
  std::string out;
  for (const corev1::Container& container : pod.spec().containers()) {
    if (!out.empty()) out += ' ';
    out += container.name();
  }
  return out;
}

bool HasContainer(const corev1::Pod& pod, std::string_view name) {
  if (k8s::FindContainer(pod.spec(), name)) return true;
  for (const corev1::EphemeralContainer& container : pod.spec().ephemeral_containers()) {
    if (container.ephemeral_container_common().name() == name) return true;
  }
  return false;
}

// The container that is meant, in upstream's words when there is none.
Result<std::string> ContainerOf(const corev1::Pod& pod, std::string_view asked) {
  if (!asked.empty()) {
    if (HasContainer(pod, asked)) return std::string(asked);
    return BadRequest(fmt::format("container {} is not valid for pod {}", asked, pod.metadata().name()));
  }
  if (pod.spec().containers_size() == 1) return pod.spec().containers(0).name();
  auto preset = pod.metadata().annotations().find("kubectl.kubernetes.io/default-container");
  if (preset != pod.metadata().annotations().end() && HasContainer(pod, preset->second))
    return preset->second;
  return BadRequest(fmt::format("a container name must be specified for pod {}, choose one of: [{}]",
                                pod.metadata().name(), ContainerNames(pod)));
}

bool IsHopByHop(std::string_view name) {
  for (std::string_view hop :
       {"Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Te", "Trailer",
        "Transfer-Encoding", "Upgrade", "Content-Length", "Host", "Authorization"}) {
    if (http::EqualsIgnoreCase(name, hop)) return true;
  }
  return false;
}

http::Headers EndToEnd(const http::Headers& headers) {
  http::Headers out;
  for (const auto& header : headers) {
    if (!IsHopByHop(header.first)) out.Add(header.first, header.second);
  }
  return out;
}

// "https:name:port", "name:port" or "name".
struct ProxyName {
  std::string scheme = "http", name, port;
};
ProxyName ParseProxyName(std::string_view text) {
  ProxyName out;
  auto first = text.find(':');
  if (first == std::string_view::npos) {
    out.name = text;
    return out;
  }
  auto second = text.find(':', first + 1);
  if (second == std::string_view::npos) {
    out.name = text.substr(0, first);
    out.port = text.substr(first + 1);
    return out;
  }
  out.scheme = text.substr(0, first) == "https" ? "https" : "http";
  out.name = text.substr(first + 1, second - first - 1);
  out.port = text.substr(second + 1);
  return out;
}

// The path as the client sent it, still encoded, without its first `count` segments:
// /api/v1/namespaces/NS/pods/NAME/proxy has seven.
std::string AfterSegments(std::string_view raw_path, int count) {
  size_t at = 0;
  for (int i = 0; i < count && at != std::string_view::npos; ++i) at = raw_path.find('/', at + 1);
  return at == std::string_view::npos ? "" : std::string(raw_path.substr(at));
}

std::string HostPort(std::string_view ip, int32_t port) {
  return ip.find(':') != std::string_view::npos ? fmt::format("[{}]:{}", ip, port)
                                                : fmt::format("{}:{}", ip, port);
}

bool IsReady(const discoveryv1::Endpoint& endpoint) {
  return !endpoint.conditions().has_ready() || endpoint.conditions().ready();
}

}  // namespace

ConnectHandler::ConnectHandler(registry::Registry& registry, const Authorizer& authorizer,
                               BackendClients& clients)
    : registry_(registry), authorizer_(authorizer), clients_(clients) {}

ConnectHandler::~ConnectHandler() {
  MutexLock lock(mutex_);
  for (Pumping& pump : pumps_) pump.thread.request_stop();
  pumps_.clear();
}

bool ConnectHandler::Serves(const api::ResourceInfo& resource) {
  for (std::string_view name : {"pods/log", "pods/exec", "pods/attach", "pods/portforward", "pods/proxy",
                                "services/proxy", "nodes/proxy"}) {
    if (resource.group.empty() && resource.resource == name) return true;
  }
  return false;
}

void ConnectHandler::Handle(Context& context) {
  const std::string& subresource = context.info.subresource;
  Result<> done = subresource == "log"     ? Log(context)
                  : subresource == "proxy" ? Proxy(context)
                                           : Stream(context);
  if (!done) ReplyError(context, done.error());
}

Result<std::shared_ptr<const corev1::Pod>> ConnectHandler::GetPod(const Context& context) {
  std::string name =
      context.info.subresource == "proxy" ? ParseProxyName(context.info.name).name : context.info.name;
  ASSIGN_OR_RETURN(registry::ObjectPtr object,
                   registry_.Get(api::ResourceOf<corev1::Pod>(), context.info.ns, name));
  return std::static_pointer_cast<const corev1::Pod>(object->Decode());
}

Result<> ConnectHandler::Log(Context& context) {
  ASSIGN_OR_RETURN(std::shared_ptr<const corev1::Pod> pod, GetPod(context));
  ASSIGN_OR_RETURN(std::string container, ContainerOf(*pod, context.query().Get("container")));
  if (http::WantsWebSocket(*context.request)) {
    ASSIGN_OR_RETURN(context.writer, http::NewWebSocketByteWriter(*context.request, context.writer));
  }
  if (pod->spec().node_name().empty()) {
    // Nothing runs yet, so there is nothing to show.
    context.status = 200;
    context.writer->Start(200, {{"Content-Type", "text/plain"}});
    context.writer->Finish();
    return {};
  }
  http::Query query;
  for (std::string_view name : {"follow", "previous", "sinceSeconds", "sinceTime", "timestamps", "tailLines",
                                "limitBytes", "stream"}) {
    std::string_view value = context.query().Get(name);
    if (!value.empty()) query.Add(std::string(name), std::string(value));
  }
  ASSIGN_OR_RETURN(std::shared_ptr<http::Client> client, clients_.Kubelet(pod->spec().node_name()));
  http::ClientRequest request;
  request.target = fmt::format("/containerLogs/{}/{}/{}?{}", context.info.ns, context.info.name, container,
                               query.ToString());
  ASSIGN_OR_RETURN(std::unique_ptr<http::ResponseReader> reader, client->Open(request, kConnectTimeout));
  if (reader->status() != 200) {
    std::string why;
    for (;;) {
      Result<std::string> piece = reader->Read({}, kConnectTimeout);
      if (!piece || piece->empty() || why.size() > 4096) break;
      why += *piece;
    }
    return Error(CodeOf(reader->status(), ""), why.empty() ? "the kubelet refused to show the log" : why);
  }
  context.status = 200;
  context.writer->Start(200, {{"Content-Type", "text/plain"}, {"Cache-Control", "no-cache, private"}});
  Pump(context.writer, std::move(client), std::move(reader));
  return {};
}

void ConnectHandler::Pump(std::shared_ptr<http::ResponseWriter> writer, std::shared_ptr<http::Client> client,
                          std::unique_ptr<http::ResponseReader> reader) {
  auto done = std::make_shared<std::atomic<bool>>(false);
  auto closed = std::make_shared<std::stop_source>();
  writer->OnClose([closed] { closed->request_stop(); });
  std::shared_ptr<http::ResponseReader> shared = std::move(reader);
  std::jthread thread([=, keep = std::move(client)](std::stop_token stop) {
    std::stop_callback forward(stop, [closed] { closed->request_stop(); });
    std::stop_token over = closed->get_token();
    Mutex mutex;
    CondVar never;
    for (;;) {
      Result<std::string> piece = shared->Read(over, std::chrono::milliseconds::max());
      if (!piece) break;
      if (piece->empty()) {
        writer->Finish();
        break;
      }
      if (!writer->Write(std::make_shared<const std::string>(std::move(*piece)))) break;
      // The client reads at its own pace: do not fill the memory with what it has not taken yet.
      while (writer->queued_bytes() > kMaxQueued && !over.stop_requested()) {
        MutexLock lock(mutex);
        never.wait_for(mutex, over, std::chrono::milliseconds(20), [] { return false; });
      }
    }
    done->store(true);
  });
  MutexLock lock(mutex_);
  pumps_.remove_if([](const Pumping& pump) { return pump.done->load(); });
  pumps_.push_back({std::move(thread), std::move(done)});
}

Result<> ConnectHandler::Stream(Context& context) {
  if (context.request->method == "GET") {
    // WebSockets begin with a GET; running a command is no reading, whatever the method.
    RequestInfo create = context.info;
    create.verb = "create";
    Attributes attributes{context.user, create};
    Decision decision = authorizer_.Authorize(attributes);
    if (!decision.allowed) return ForbiddenTo(attributes, decision.reason);
  }
  if (!http::IsUpgradeRequest(*context.request)) return BadRequest("Upgrade request required");
  ASSIGN_OR_RETURN(std::shared_ptr<const corev1::Pod> pod, GetPod(context));
  const http::Query& query = context.query();
  http::Query out;
  std::string target;
  if (context.info.subresource == "portforward") {
    target = fmt::format("/portForward/{}/{}", context.info.ns, context.info.name);
    for (std::string_view port : query.All("ports")) out.Add("port", std::string(port));
  } else {
    ASSIGN_OR_RETURN(std::string container, ContainerOf(*pod, query.Get("container")));
    target =
        fmt::format("/{}/{}/{}/{}", context.info.subresource, context.info.ns, context.info.name, container);
    for (std::string_view part : query.All("command")) out.Add("command", std::string(part));
    constexpr std::pair<const char*, const char*> kStreams[] = {
        {"stdin", "input"}, {"stdout", "output"}, {"stderr", "error"}, {"tty", "tty"}};
    for (const auto& stream : kStreams) {
      if (query.GetBool(stream.first)) out.Add(stream.second, "1");
    }
  }
  if (pod->spec().node_name().empty()) {
    return BadRequest(fmt::format("pod {} does not have a host assigned", pod->metadata().name()));
  }
  ASSIGN_OR_RETURN(std::shared_ptr<http::Client> client, clients_.Kubelet(pod->spec().node_name()));
  context.status = 101;
  http::ProxyUpgrade(*context.request, context.writer, *client, target + "?" + out.ToString(), {});
  return {};
}

Result<std::string> ConnectHandler::PodUrl(const Context& context) {
  ASSIGN_OR_RETURN(std::shared_ptr<const corev1::Pod> pod, GetPod(context));
  ProxyName name = ParseProxyName(context.info.name);
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
  if (pod->status().pod_ip().empty()) return BadRequest("address not allowed");
  return name.scheme + "://" + HostPort(pod->status().pod_ip(), port == 0 ? 80 : port);
}

Result<std::string> ConnectHandler::ServiceUrl(const Context& context) {
  ProxyName name = ParseProxyName(context.info.name);
  ASSIGN_OR_RETURN(registry::ObjectPtr object,
                   registry_.Get(api::ResourceOf<corev1::Service>(), context.info.ns, name.name));
  auto service = std::static_pointer_cast<const corev1::Service>(object->Decode());
  // The service's port, by name or number; endpoint slices know it by its name.
  std::string port_name;
  bool found = name.port.empty() && service->spec().ports_size() == 1;
  if (found) port_name = service->spec().ports(0).name();
  for (const corev1::ServicePort& port : service->spec().ports()) {
    if (found || (port.name() != name.port && std::to_string(port.port()) != name.port)) continue;
    port_name = port.name();
    found = true;
  }
  if (!found)
    return Error(Code::kUnavailable,
                 fmt::format("no service port \"{}\" found for service \"{}\"", name.port, name.name));
  registry::ListOptions options;
  options.label_selector = "kubernetes.io/service-name=" + name.name;
  options.resource_version = "0";
  ASSIGN_OR_RETURN(registry::ObjectList slices,
                   registry_.List(api::ResourceOf<discoveryv1::EndpointSlice>(), context.info.ns, options));
  for (const registry::ObjectPtr& item : slices.items) {
    auto slice = std::static_pointer_cast<const discoveryv1::EndpointSlice>(item->Decode());
    for (const discoveryv1::EndpointPort& port : slice->ports()) {
      if (port.name() != port_name) continue;
      for (const discoveryv1::Endpoint& endpoint : slice->endpoints()) {
        if (!IsReady(endpoint) || endpoint.addresses().empty()) continue;
        return name.scheme + "://" + HostPort(endpoint.addresses(0), port.port());
      }
    }
  }
  return Error(Code::kUnavailable, fmt::format("no endpoints available for service \"{}\"", name.name));
}

Result<> ConnectHandler::Proxy(Context& context) {
  std::shared_ptr<http::Client> client;
  if (context.info.resource == "nodes") {
    ASSIGN_OR_RETURN(client, clients_.Kubelet(ParseProxyName(context.info.name).name));
  } else {
    Result<std::string> url = context.info.resource == "pods" ? PodUrl(context) : ServiceUrl(context);
    if (!url) return url.error();
    ASSIGN_OR_RETURN(client, clients_.Plain(*url));
  }
  std::string target = AfterSegments(context.request->raw_path, context.info.ns.empty() ? 5 : 7);
  if (target.empty()) target = "/";
  if (!context.request->raw_query.empty()) target += "?" + context.request->raw_query;
  return PassOn(context, std::move(client), std::move(target));
}

Result<> ConnectHandler::PassOn(Context& context, std::shared_ptr<http::Client> client, std::string target) {
  if (http::IsUpgradeRequest(*context.request)) {
    context.status = 101;
    http::ProxyUpgrade(*context.request, context.writer, *client, target, {});
    return {};
  }
  http::ClientRequest request;
  request.method = context.request->method;
  request.target = std::move(target);
  request.headers = EndToEnd(context.request->headers);
  request.headers.Set("X-Forwarded-Uri", context.request->path);
  request.body = context.request->body;
  auto reader = client->Open(request, kConnectTimeout);
  if (!reader) {
    return Error(Code::kUnavailable,
                 fmt::format("error trying to reach service: {}", reader.error().message()));
  }
  context.status = (*reader)->status();
  context.writer->Start(context.status, EndToEnd((*reader)->headers()));
  Pump(context.writer, std::move(client), std::move(*reader));
  return {};
}

}  // namespace keelson::apiserver
