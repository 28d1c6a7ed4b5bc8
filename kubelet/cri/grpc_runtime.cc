#include "kubelet/cri/grpc_runtime.h"

// Before gRPC's headers: both define thread-safety macros, and a system header may do so again.
#include "lib/metrics/metrics.h"
#include "lib/rpc/channel.h"

#include <grpcpp/grpcpp.h>

#include "kubelet/cri/containerd_events.h"
#include "kubelet/cri/convert.h"
#include "kubelet/metrics/buckets.h"
#include "lib/rpc/proto/cri.grpc.pb.h"

namespace keelson::kubelet::cri {

namespace v1 = runtime::v1;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

// One unary call. `method` is a member of the stub.
template <typename Stub, typename Request, typename Reply, typename Method>
Result<> Invoke(Stub& stub, Method method, const Request& request, Reply& reply, milliseconds timeout,
                std::stop_token stop, std::string_view what) {
  rpc::Call call(timeout, std::move(stop));
  return call.Done((stub.*method)(call.context(), request, &reply), what);
}

// Of calls whose errors pods' statuses and events show: in the words that other kubelets have for them there.
enum class Shown {
  kMessage,    // the runtime's alone
  kGo,         // rpc error: code = NotFound desc = ...
  kGoIfKnown,  // the same, but for the code Unknown, which tells nothing
};

template <typename Stub, typename Request, typename Reply, typename Method>
Result<> InvokeShown(Shown shown, Stub& stub, Method method, const Request& request, Reply& reply,
                     milliseconds timeout, std::stop_token stop, std::string_view what) {
  rpc::Call call(timeout, std::move(stop));
  const grpc::Status status = (stub.*method)(call.context(), request, &reply);
  Result<> done = call.Done(status, what);
  if (done || done.error().Is(Code::kCancelled)) return done;
  const bool known = status.error_code() != grpc::StatusCode::UNKNOWN;
  if (shown == Shown::kGo || (shown == Shown::kGoIfKnown && known)) return rpc::GoError(status);
  return Error(done.error().code(), status.error_message());
}

// containerd and CRI-O both succeed when there is nothing to stop or remove; older ones answered NotFound.
Result<> AbsentIsFine(Result<> result) {
  if (!result && result.error().Is(Code::kNotFound)) return {};
  return result;
}

template <typename WireFilter>
void FilterLabels(const Filter& filter, WireFilter& out) {
  if (!filter.id.empty()) out.set_id(filter.id);
  for (const auto& [key, value] : filter.labels) (*out.mutable_label_selector())[key] = value;
}

// How long ago the runtime made an event; nanoseconds since the epoch.
void ObserveLatency(int64_t created_at) {
  static metrics::Histogram& latency =
      metrics::Histograms("kubelet_evented_pleg_connection_latency_seconds",
                          "The latency of streaming connection with the CRI runtime, measured in seconds.",
                          DefaultBuckets())
          .HistogramWith();
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  latency.Observe(std::chrono::duration<double>(now - std::chrono::nanoseconds(created_at)).count());
}

class GrpcRuntime : public RuntimeService {
 public:
  GrpcRuntime(const std::shared_ptr<grpc::Channel>& channel, const GrpcOptions& options)
      : channel_(channel),
        stub_(v1::RuntimeService::NewStub(channel)),
        timeout_(options.request_timeout),
        oom_killed_(options.oom_killed) {}

  Result<Version> GetVersion(std::stop_token stop) override {
    v1::VersionRequest request;
    v1::VersionResponse reply;
    request.set_version("v1");
    KEELSON_RETURN_IF_ERROR(Call(&Stub::Version, request, reply, stop, "get the runtime's version"));
    return Version{reply.runtime_name(), reply.runtime_version(), reply.runtime_api_version()};
  }

  Result<RuntimeStatus> Status(std::stop_token stop) override {
    v1::StatusRequest request;
    v1::StatusResponse reply;
    KEELSON_RETURN_IF_ERROR(Call(&Stub::Status, request, reply, stop, "get the runtime's status"));
    return FromWire(reply);
  }

  Result<bool> CgroupDriver(bool& systemd, std::stop_token stop) override {
    v1::RuntimeConfigRequest request;
    v1::RuntimeConfigResponse reply;
    auto done = Call(&Stub::RuntimeConfig, request, reply, stop, "get the runtime's configuration");
    if (!done && done.error().Is(Code::kUnimplemented)) return false;
    if (!done) return done.error();
    systemd = reply.linux().cgroup_driver() == v1::SYSTEMD;
    return reply.has_linux();
  }

  Result<std::string> RunPodSandbox(const SandboxConfig& config, const std::string& handler,
                                    std::stop_token stop) override {
    v1::RunPodSandboxRequest request;
    v1::RunPodSandboxResponse reply;
    ToWire(config, *request.mutable_config());
    request.set_runtime_handler(handler);
    // Network set-up may take long: twice the time of other calls.
    KEELSON_RETURN_IF_ERROR(InvokeShown(Shown::kGo, *stub_, &Stub::RunPodSandbox, request, reply,
                                        timeout_ * 2, stop, "run pod sandbox"));
    return reply.pod_sandbox_id();
  }

  Result<> StopPodSandbox(const std::string& id, std::stop_token stop) override {
    v1::StopPodSandboxRequest request;
    v1::StopPodSandboxResponse reply;
    request.set_pod_sandbox_id(id);
    return AbsentIsFine(Call(&Stub::StopPodSandbox, request, reply, stop, "stop pod sandbox"));
  }

  Result<> RemovePodSandbox(const std::string& id, std::stop_token stop) override {
    v1::RemovePodSandboxRequest request;
    v1::RemovePodSandboxResponse reply;
    request.set_pod_sandbox_id(id);
    return AbsentIsFine(Call(&Stub::RemovePodSandbox, request, reply, stop, "remove pod sandbox"));
  }

  Result<SandboxStatus> PodSandboxStatus(const std::string& id, std::stop_token stop) override {
    v1::PodSandboxStatusRequest request;
    v1::PodSandboxStatusResponse reply;
    request.set_pod_sandbox_id(id);
    KEELSON_RETURN_IF_ERROR(Call(&Stub::PodSandboxStatus, request, reply, stop, "get pod sandbox status"));
    return FromWire(reply.status());
  }

  Result<std::vector<Sandbox>> ListPodSandbox(const Filter& filter, std::stop_token stop) override {
    v1::ListPodSandboxRequest request;
    v1::ListPodSandboxResponse reply;
    FilterLabels(filter, *request.mutable_filter());
    KEELSON_RETURN_IF_ERROR(Call(&Stub::ListPodSandbox, request, reply, stop, "list pod sandboxes"));
    std::vector<Sandbox> out;
    for (const auto& item : reply.items()) out.push_back(FromWire(item));
    return out;
  }

  Result<std::string> CreateContainer(const std::string& sandbox_id, const ContainerConfig& config,
                                      const SandboxConfig& sandbox, std::stop_token stop) override {
    v1::CreateContainerRequest request;
    v1::CreateContainerResponse reply;
    request.set_pod_sandbox_id(sandbox_id);
    ToWire(config, *request.mutable_config());
    ToWire(sandbox, *request.mutable_sandbox_config());
    KEELSON_RETURN_IF_ERROR(InvokeShown(Shown::kMessage, *stub_, &Stub::CreateContainer, request, reply,
                                        timeout_, stop, "create container"));
    return reply.container_id();
  }

  Result<> StartContainer(const std::string& id, std::stop_token stop) override {
    v1::StartContainerRequest request;
    v1::StartContainerResponse reply;
    request.set_container_id(id);
    return InvokeShown(Shown::kMessage, *stub_, &Stub::StartContainer, request, reply, timeout_, stop,
                       "start container");
  }

  Result<> StopContainer(const std::string& id, seconds grace, std::stop_token stop) override {
    v1::StopContainerRequest request;
    v1::StopContainerResponse reply;
    request.set_container_id(id);
    request.set_timeout(grace.count());
    return AbsentIsFine(
        Invoke(*stub_, &Stub::StopContainer, request, reply, timeout_ + grace, stop, "stop container"));
  }

  Result<> RemoveContainer(const std::string& id, std::stop_token stop) override {
    v1::RemoveContainerRequest request;
    v1::RemoveContainerResponse reply;
    request.set_container_id(id);
    return AbsentIsFine(Call(&Stub::RemoveContainer, request, reply, stop, "remove container"));
  }

  Result<cri::ContainerStatus> GetContainerStatus(const std::string& id, std::stop_token stop) override {
    v1::ContainerStatusRequest request;
    v1::ContainerStatusResponse reply;
    request.set_container_id(id);
    KEELSON_RETURN_IF_ERROR(Call(&Stub::ContainerStatus, request, reply, stop, "get container status"));
    cri::ContainerStatus status = FromWire(reply.status());
    SetOomKilled(oom_killed_, status);
    return status;
  }

  Result<std::vector<Container>> ListContainers(const Filter& filter, std::stop_token stop) override {
    v1::ListContainersRequest request;
    v1::ListContainersResponse reply;
    FilterLabels(filter, *request.mutable_filter());
    if (!filter.sandbox_id.empty()) request.mutable_filter()->set_pod_sandbox_id(filter.sandbox_id);
    KEELSON_RETURN_IF_ERROR(Call(&Stub::ListContainers, request, reply, stop, "list containers"));
    std::vector<Container> out;
    for (const auto& item : reply.containers()) out.push_back(FromWire(item));
    return out;
  }

  Result<> UpdateContainerResources(const std::string& id, const LinuxResources& resources,
                                    std::stop_token stop) override {
    v1::UpdateContainerResourcesRequest request;
    v1::UpdateContainerResourcesResponse reply;
    request.set_container_id(id);
    ToWire(resources, *request.mutable_linux());
    return Call(&Stub::UpdateContainerResources, request, reply, stop, "update container resources");
  }

  Result<> CheckpointContainer(const std::string& id, const std::string& location,
                               std::stop_token stop) override {
    v1::CheckpointContainerRequest request;
    v1::CheckpointContainerResponse reply;
    request.set_container_id(id);
    request.set_location(location);
    return Call(&Stub::CheckpointContainer, request, reply, stop, "checkpoint container");
  }

  Result<> UpdateRuntimeConfig(const std::string& pod_cidrs, std::stop_token stop) override {
    v1::UpdateRuntimeConfigRequest request;
    v1::UpdateRuntimeConfigResponse reply;
    request.mutable_runtime_config()->mutable_network_config()->set_pod_cidr(pod_cidrs);
    return Call(&Stub::UpdateRuntimeConfig, request, reply, stop, "update runtime config");
  }

  Result<> ReopenContainerLog(const std::string& id, std::stop_token stop) override {
    v1::ReopenContainerLogRequest request;
    v1::ReopenContainerLogResponse reply;
    request.set_container_id(id);
    return Call(&Stub::ReopenContainerLog, request, reply, stop, "reopen container log");
  }

  Result<std::vector<ContainerStats>> ListContainerStats(const Filter& filter,
                                                         std::stop_token stop) override {
    v1::ListContainerStatsRequest request;
    v1::ListContainerStatsResponse reply;
    FilterLabels(filter, *request.mutable_filter());
    if (!filter.sandbox_id.empty()) request.mutable_filter()->set_pod_sandbox_id(filter.sandbox_id);
    KEELSON_RETURN_IF_ERROR(Call(&Stub::ListContainerStats, request, reply, stop, "list container stats"));
    std::vector<ContainerStats> out;
    for (const auto& item : reply.stats()) out.push_back(FromWire(item));
    return out;
  }

  Result<ExecResult> ExecSync(const std::string& id, const std::vector<std::string>& command, seconds timeout,
                              std::stop_token stop) override {
    v1::ExecSyncRequest request;
    v1::ExecSyncResponse reply;
    request.set_container_id(id);
    for (const std::string& word : command) request.add_cmd(word);
    request.set_timeout(timeout.count());
    // The runtime enforces `timeout`; ours is for a runtime that hangs.
    milliseconds deadline = timeout.count() > 0 ? milliseconds(timeout + timeout_) : milliseconds(0);
    KEELSON_RETURN_IF_ERROR(
        Invoke(*stub_, &Stub::ExecSync, request, reply, deadline, stop, "exec in container"));
    return ExecResult{reply.stdout() + reply.stderr(), reply.exit_code()};
  }

  Result<std::string> Exec(const std::string& id, const std::vector<std::string>& command,
                           const ExecOptions& options, std::stop_token stop) override {
    v1::ExecRequest request;
    v1::ExecResponse reply;
    request.set_container_id(id);
    for (const std::string& word : command) request.add_cmd(word);
    SetStreams(options, request);
    KEELSON_RETURN_IF_ERROR(Call(&Stub::Exec, request, reply, stop, "prepare exec"));
    return reply.url();
  }

  Result<std::string> Attach(const std::string& id, const ExecOptions& options,
                             std::stop_token stop) override {
    v1::AttachRequest request;
    v1::AttachResponse reply;
    request.set_container_id(id);
    SetStreams(options, request);
    KEELSON_RETURN_IF_ERROR(Call(&Stub::Attach, request, reply, stop, "prepare attach"));
    return reply.url();
  }

  Result<std::string> PortForward(const std::string& sandbox_id, const std::vector<int32_t>& ports,
                                  std::stop_token stop) override {
    v1::PortForwardRequest request;
    v1::PortForwardResponse reply;
    request.set_pod_sandbox_id(sandbox_id);
    for (int32_t port : ports) request.add_port(port);
    KEELSON_RETURN_IF_ERROR(Call(&Stub::PortForward, request, reply, stop, "prepare port forward"));
    return reply.url();
  }

  Result<> WatchEvents(const std::function<void(const ContainerEvent&)>& each,
                       std::stop_token stop) override {
    rpc::Call call(milliseconds(0), stop);
    auto stream = stub_->GetContainerEvents(call.context(), v1::GetEventsRequest());
    v1::ContainerEventResponse event;
    while (stream->Read(&event)) {
      ObserveLatency(event.created_at());
      each(FromWire(event));
    }
    auto ended = call.Done(stream->Finish(), "watch container events");
    if (!ended && ended.error().Is(Code::kUnimplemented)) return WatchContainerdEvents(channel_, each, stop);
    return ended;
  }

 private:
  using Stub = v1::RuntimeService::Stub;

  template <typename Method, typename Request, typename Reply>
  Result<> Call(Method method, const Request& request, Reply& reply, const std::stop_token& stop,
                std::string_view what) {
    return Invoke(*stub_, method, request, reply, timeout_, stop, what);
  }

  template <typename Request>
  static void SetStreams(const ExecOptions& options, Request& request) {
    request.set_stdin(options.in);
    request.set_stdout(options.out);
    request.set_stderr(options.err);
    request.set_tty(options.tty);
  }

  const std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<Stub> stub_;
  seconds timeout_;
  const std::function<bool(const std::string& id)> oom_killed_;
};

class GrpcImages : public ImageService {
 public:
  GrpcImages(const std::shared_ptr<grpc::Channel>& channel, seconds timeout)
      : stub_(v1::ImageService::NewStub(channel)), timeout_(timeout) {}

  Result<std::vector<Image>> ListImages(std::stop_token stop) override {
    v1::ListImagesResponse reply;
    KEELSON_RETURN_IF_ERROR(
        Invoke(*stub_, &Stub::ListImages, v1::ListImagesRequest(), reply, timeout_, stop, "list images"));
    std::vector<Image> out;
    for (const auto& item : reply.images()) out.push_back(FromWire(item));
    return out;
  }

  Result<std::optional<Image>> ImageStatus(const std::string& image, std::stop_token stop) override {
    v1::ImageStatusRequest request;
    v1::ImageStatusResponse reply;
    request.mutable_image()->set_image(image);
    KEELSON_RETURN_IF_ERROR(
        Invoke(*stub_, &Stub::ImageStatus, request, reply, timeout_, stop, "get image status"));
    if (!reply.has_image()) return std::optional<Image>();
    return std::optional<Image>(FromWire(reply.image()));
  }

  Result<std::string> PullImage(const std::string& image, const std::optional<AuthConfig>& auth,
                                const SandboxConfig& sandbox, std::stop_token stop) override {
    v1::PullImageRequest request;
    v1::PullImageResponse reply;
    request.mutable_image()->set_image(image);
    if (auth) ToWire(*auth, *request.mutable_auth());
    ToWire(sandbox, *request.mutable_sandbox_config());
    KEELSON_RETURN_IF_ERROR(InvokeShown(Shown::kGoIfKnown, *stub_, &Stub::PullImage, request, reply,
                                        milliseconds(0), stop, "pull image"));
    return reply.image_ref();
  }

  Result<> RemoveImage(const std::string& image, std::stop_token stop) override {
    v1::RemoveImageRequest request;
    v1::RemoveImageResponse reply;
    request.mutable_image()->set_image(image);
    return AbsentIsFine(Invoke(*stub_, &Stub::RemoveImage, request, reply, timeout_, stop, "remove image"));
  }

  Result<ImageFilesystems> ImageFsInfo(std::stop_token stop) override {
    v1::ImageFsInfoResponse reply;
    KEELSON_RETURN_IF_ERROR(Invoke(*stub_, &Stub::ImageFsInfo, v1::ImageFsInfoRequest(), reply, timeout_,
                                   stop, "get image file system usage"));
    return FromWire(reply);
  }

 private:
  using Stub = v1::ImageService::Stub;
  std::unique_ptr<Stub> stub_;
  seconds timeout_;
};

}  // namespace

GrpcServices NewGrpcServices(const GrpcOptions& options) {
  auto channel = rpc::PlainChannel(options.endpoint);
  auto images = options.image_endpoint.empty() || options.image_endpoint == options.endpoint
                    ? channel
                    : rpc::PlainChannel(options.image_endpoint);
  return {std::make_unique<GrpcRuntime>(channel, options),
          std::make_unique<GrpcImages>(images, options.request_timeout)};
}

}  // namespace keelson::kubelet::cri
