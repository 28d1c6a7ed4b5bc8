#include "ctl/host/pod_sandboxes.h"

#include <grpcpp/grpcpp.h>

#include "lib/rpc/channel.h"
#include "lib/rpc/proto/cri.grpc.pb.h"

namespace keelson::ctl {
namespace {

namespace cri = ::runtime::v1;

// Containers have their grace period, and CNI plugins their time.
constexpr std::chrono::seconds kListPatience{10}, kStopPatience{120};

}  // namespace

Result<int> RemovePodSandboxes(const std::string& socket) {
  const auto runtime = cri::RuntimeService::NewStub(rpc::UnixChannel(socket));
  cri::ListPodSandboxResponse pods;
  {
    rpc::Call call(kListPatience);
    KEELSON_RETURN_IF_ERROR(call.Done(runtime->ListPodSandbox(call.context(), {}, &pods),
                                      "list pods of the runtime at " + socket));
  }
  for (const cri::PodSandbox& pod : pods.items()) {
    const std::string name = pod.metadata().namespace_() + "/" + pod.metadata().name();
    {
      rpc::Call call(kStopPatience);
      cri::StopPodSandboxRequest request;
      cri::StopPodSandboxResponse reply;
      request.set_pod_sandbox_id(pod.id());
      KEELSON_RETURN_IF_ERROR(
          call.Done(runtime->StopPodSandbox(call.context(), request, &reply), "stop pod " + name));
    }
    rpc::Call call(kStopPatience);
    cri::RemovePodSandboxRequest request;
    cri::RemovePodSandboxResponse reply;
    request.set_pod_sandbox_id(pod.id());
    KEELSON_RETURN_IF_ERROR(
        call.Done(runtime->RemovePodSandbox(call.context(), request, &reply), "remove pod " + name));
  }
  return pods.items_size();
}

}  // namespace keelson::ctl
