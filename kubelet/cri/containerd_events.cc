#include "kubelet/cri/containerd_events.h"

// Before gRPC's headers: both define thread-safety macros, and a system header may do so again.
#include "lib/rpc/channel.h"

#include <grpcpp/grpcpp.h>

#include <map>
#include <optional>

#include "lib/rpc/proto/containerd_events.grpc.pb.h"

namespace keelson::kubelet::cri {

namespace events = containerd::services::events::v1;

namespace {

// containers of CRI are in this namespace of containerd.
constexpr const char* kFilters[] = {"namespace==k8s.io,topic~=\"^/tasks/(start|exit)$\"",
                                    "namespace==k8s.io,topic~=\"^/containers/(create|delete)$\""};

std::optional<ContainerEvent> Read(const events::Envelope& envelope) {
  static const std::map<std::string_view, ContainerEvent::Type> kTypes = {
      {"/containers/create", ContainerEvent::Type::kCreated},
      {"/tasks/start", ContainerEvent::Type::kStarted},
      {"/tasks/exit", ContainerEvent::Type::kStopped},
      {"/containers/delete", ContainerEvent::Type::kDeleted}};
  const auto type = kTypes.find(envelope.topic());
  events::TaskEvent task;
  if (type == kTypes.end() || !task.ParseFromString(envelope.event().value())) return std::nullopt;
  const bool command = type->second == ContainerEvent::Type::kStopped && task.id() != task.container_id();
  if (command) return std::nullopt;
  return ContainerEvent{task.container_id(), type->second, ""};
}

}  // namespace

Result<> WatchContainerdEvents(const std::shared_ptr<grpc::Channel>& channel,
                               const std::function<void(const ContainerEvent&)>& each, std::stop_token stop) {
  auto stub = events::Events::NewStub(channel);
  rpc::Call call(std::chrono::milliseconds(0), std::move(stop));
  events::SubscribeRequest request;
  for (const char* filter : kFilters) request.add_filters(filter);
  auto stream = stub->Subscribe(call.context(), request);
  events::Envelope envelope;
  while (stream->Read(&envelope)) {
    if (auto event = Read(envelope)) each(*event);
  }
  return call.Done(stream->Finish(), "watch events of containerd");
}

}  // namespace keelson::kubelet::cri
