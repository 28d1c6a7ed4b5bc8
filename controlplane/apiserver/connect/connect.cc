#include "controlplane/apiserver/connect/connect.h"

#include <condition_variable>

#include <fmt/format.h>

#include "controlplane/apiserver/connect/connect_options.h"
#include "controlplane/apiserver/connect/log_options.h"
#include "controlplane/apiserver/endpoints/request_admission.h"
#include "controlplane/apiserver/endpoints/response.h"
#include "lib/api/meta.h"
#include "lib/http/streaming/streaming.h"
#include "lib/http/streaming/websocket_writer.h"
#include "lib/k8s/pods/pod_util.h"

namespace keelson::apiserver {
namespace {

constexpr std::chrono::seconds kConnectTimeout{30};
constexpr size_t kMaxQueued = 4u << 20;

Error BadRequest(std::string message) { return Error(Code::kBadRequest, std::move(message)); }

std::string ContainerNames(const corev1::Pod& pod) {
  std::string out;
  auto add = [&out](const std::string& name) { out += (out.empty() ? "" : " ") + name; };
  for (const corev1::Container& container : pod.spec().init_containers()) add(container.name());
  for (const corev1::Container& container : pod.spec().containers()) add(container.name());
  for (const corev1::EphemeralContainer& container : pod.spec().ephemeral_containers()) {
    add(container.ephemeral_container_common().name());
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

// The requested or default container; the error has upstream's wording.
Result<std::string> ContainerOf(const corev1::Pod& pod, std::string_view asked) {
  if (!asked.empty()) {
    if (HasContainer(pod, asked)) return std::string(asked);
    return BadRequest(fmt::format("container {} is not valid for pod {}", asked, pod.metadata().name()));
  }
  if (pod.spec().containers_size() == 1) return pod.spec().containers(0).name();
  auto preset = pod.metadata().annotations().find("kubectl.kubernetes.io/default-container");
  if (preset != pod.metadata().annotations().end() && HasContainer(pod, preset->second)) {
    return preset->second;
  }
  return BadRequest(fmt::format("a container name must be specified for pod {}, choose one of: [{}]",
                                pod.metadata().name(), ContainerNames(pod)));
}

}  // namespace

ConnectHandler::ConnectHandler(registry::Registry& registry, const Authorizer& authorizer,
                               const AdmissionChain& admission, BackendClients& clients)
    : registry_(registry), authorizer_(authorizer), admission_(admission), clients_(clients) {}

ConnectHandler::~ConnectHandler() {
  completions_->Close();
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

bool ConnectHandler::StreamsBody(const RequestInfo& info) {
  return info.is_resource && info.group.empty() && info.subresource == "proxy";
}

bool ConnectHandler::Handle(const std::shared_ptr<Context>& context, std::function<void()> done) {
  const std::string& subresource = context->info.subresource;
  Result<bool> answered = true;
  if (subresource == "proxy") {
    answered = Proxy(context, std::move(done));
  } else if (Result<> begun = subresource == "log" ? Log(*context) : Stream(*context); !begun) {
    answered = begun.error();
  }
  if (!answered) ReplyError(*context, answered.error());
  return !answered || *answered;
}

Result<http::Query> ConnectHandler::Admit(Context& context) {
  const std::unique_ptr<api::Message> options =
      ConnectOptionsOf(*context.resource, context.query(), context.info);
  RequestAdmission admission(admission_, context, false);
  KEELSON_RETURN_IF_ERROR(
      admission.RunBoth(registry::Operation::kConnect, *context.resource, options.get(), nullptr));
  return QueryOf(*options);
}

Result<std::shared_ptr<const corev1::Pod>> ConnectHandler::GetPod(std::string_view ns,
                                                                  std::string_view name) {
  KEELSON_ASSIGN_OR_RETURN(registry::ObjectPtr object,
                           registry_.Get(api::ResourceOf<corev1::Pod>(), ns, name));
  return std::static_pointer_cast<const corev1::Pod>(object->Decode());
}

Result<> ConnectHandler::Log(Context& context) {
  KEELSON_RETURN_IF_ERROR(CheckLogOptions(context.query(), context.info.name));
  KEELSON_ASSIGN_OR_RETURN(std::shared_ptr<const corev1::Pod> pod,
                           GetPod(context.info.ns, context.info.name));
  KEELSON_ASSIGN_OR_RETURN(std::string container, ContainerOf(*pod, context.query().Get("container")));
  if (http::WantsWebSocket(*context.request)) {
    KEELSON_ASSIGN_OR_RETURN(context.writer, http::NewWebSocketByteWriter(*context.request, context.writer));
  }
  if (pod->spec().node_name().empty()) {
    // No container has started yet: the log is empty.
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
  KEELSON_ASSIGN_OR_RETURN(std::shared_ptr<http::Client> client, clients_.Kubelet(pod->spec().node_name()));
  http::ClientRequest request;
  request.target = fmt::format("/containerLogs/{}/{}/{}?{}", context.info.ns, context.info.name, container,
                               query.ToString());
  KEELSON_ASSIGN_OR_RETURN(std::unique_ptr<http::ResponseReader> reader,
                           client->Open(request, kConnectTimeout));
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
      // Flow control: wait while the client reads slowly.
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
    // WebSockets start with GET, but exec needs `create` permission.
    RequestInfo create = context.info;
    create.verb = "create";
    Attributes attributes{context.user, create};
    Decision decision = authorizer_.Authorize(attributes);
    if (!decision.allowed) return ForbiddenTo(attributes, decision.reason);
  }
  if (!http::IsUpgradeRequest(*context.request)) return BadRequest("Upgrade request required");
  KEELSON_ASSIGN_OR_RETURN(const http::Query query, Admit(context));
  KEELSON_ASSIGN_OR_RETURN(std::shared_ptr<const corev1::Pod> pod,
                           GetPod(context.info.ns, context.info.name));
  http::Query out;
  std::string target;
  if (context.info.subresource == "portforward") {
    target = fmt::format("/portForward/{}/{}", context.info.ns, context.info.name);
    for (std::string_view port : query.All("ports")) out.Add("port", std::string(port));
  } else {
    KEELSON_ASSIGN_OR_RETURN(std::string container, ContainerOf(*pod, query.Get("container")));
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
  KEELSON_ASSIGN_OR_RETURN(std::shared_ptr<http::Client> client, clients_.Kubelet(pod->spec().node_name()));
  context.status = 101;
  http::ProxyUpgrade(*context.request, context.writer, *client, target + "?" + out.ToString(), {});
  return {};
}

}  // namespace keelson::apiserver
