#include "ctl/host/runtime_facts.h"

#include <grpcpp/grpcpp.h>

#include "lib/rpc/channel.h"
#include "lib/rpc/proto/cri.grpc.pb.h"

namespace keelson::ctl {
namespace {

namespace cri = ::runtime::v1;

constexpr std::chrono::seconds kPatience{10};

}  // namespace

std::string PathOfSocket(const std::string& url) {
  constexpr std::string_view kScheme = "unix://";
  return url.starts_with(kScheme) ? url.substr(kScheme.size()) : url;
}

Result<RuntimeFacts> AskRuntimeAt(const std::string& socket) {
  const auto runtime = cri::RuntimeService::NewStub(rpc::UnixChannel(socket));
  RuntimeFacts out;
  {
    rpc::Call call(kPatience);
    cri::VersionResponse reply;
    KEELSON_RETURN_IF_ERROR(
        call.Done(runtime->Version(call.context(), {}, &reply), "version of the runtime at " + socket));
    out.name = reply.runtime_name();
    out.version = reply.runtime_version();
  }
  {
    rpc::Call call(kPatience);
    cri::RuntimeConfigResponse reply;
    if (runtime->RuntimeConfig(call.context(), {}, &reply).ok() && reply.has_linux()) {
      out.cgroup_driver = reply.linux().cgroup_driver() == cri::SYSTEMD ? "systemd" : "cgroupfs";
    }
  }
  rpc::Call call(kPatience);
  cri::StatusRequest request;
  cri::StatusResponse reply;
  request.set_verbose(true);
  if (runtime->Status(call.context(), request, &reply).ok()) {
    const auto config = reply.info().find("config");
    if (config != reply.info().end()) out.config = config->second;
  }
  return out;
}

}  // namespace keelson::ctl
