#include "kubelet/plugins/registration.h"

#include "lib/rpc/channel.h"

#include <grpcpp/grpcpp.h>

#include "lib/rpc/proto/pluginregistration.grpc.pb.h"

namespace keelson::kubelet {
namespace {

using std::chrono::seconds;

constexpr seconds kDialTimeout{10}, kInfoTimeout{1}, kNotifyTimeout{5};

}  // namespace

struct PluginRegistration::Impl {
  std::unique_ptr<pluginregistration::Registration::Stub> stub;
};

Result<std::unique_ptr<PluginRegistration>> PluginRegistration::Dial(const std::string& socket,
                                                                     std::stop_token stop) {
  auto channel = rpc::UnixChannel(socket);
  if (!rpc::AwaitConnected(*channel, kDialTimeout, stop)) {
    return Error(Code::kTimeout, "failed to dial socket " + socket + ", err: context deadline exceeded");
  }
  auto impl = std::make_unique<Impl>();
  impl->stub = pluginregistration::Registration::NewStub(channel);
  return std::unique_ptr<PluginRegistration>(new PluginRegistration(std::move(impl)));
}

PluginRegistration::PluginRegistration(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
PluginRegistration::~PluginRegistration() = default;

Result<PluginInfo> PluginRegistration::GetInfo(std::stop_token stop) {
  pluginregistration::InfoRequest request;
  pluginregistration::PluginInfo reply;
  rpc::Call call(kInfoTimeout, stop);
  grpc::Status status = impl_->stub->GetInfo(call.context(), request, &reply);
  if (!status.ok()) return rpc::GoError(status);
  const auto& versions = reply.supported_versions();
  return PluginInfo{reply.type(), reply.name(), reply.endpoint(), {versions.begin(), versions.end()}};
}

Result<> PluginRegistration::Notify(bool registered, const std::string& error, std::stop_token stop) {
  pluginregistration::RegistrationStatus request;
  pluginregistration::RegistrationStatusResponse reply;
  request.set_plugin_registered(registered);
  request.set_error(error);
  rpc::Call call(kNotifyTimeout, stop);
  grpc::Status status = impl_->stub->NotifyRegistrationStatus(call.context(), request, &reply);
  if (!status.ok()) return rpc::GoError(status);
  return {};
}

}  // namespace keelson::kubelet
