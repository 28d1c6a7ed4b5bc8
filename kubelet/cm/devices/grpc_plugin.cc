// A device plugin over gRPC.
#include <utility>

#include "kubelet/cm/devices/plugin.h"
#include "kubelet/cm/devices/wire.h"
#include "lib/base/mutex.h"
// Before gRPC's headers: both define thread-safety macros, and a system header may do so again.
#include "lib/rpc/channel.h"

#include <grpcpp/grpcpp.h>

#include "lib/rpc/proto/deviceplugin.grpc.pb.h"

namespace keelson::kubelet::devices {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr seconds kDialTimeout{10}, kOptionsTimeout{10}, kPreStartTimeout{30};
constexpr milliseconds kNoDeadline{0};  // setting devices up may take as long as the plugin likes

// ListAndWatch, without a thread of its own.
class DeviceStream final : public grpc::ClientReadReactor<v1beta1::ListAndWatchResponse> {
 public:
  DeviceStream(v1beta1::DevicePlugin::Stub& stub, DevicePlugin::Events events) : events_(std::move(events)) {
    stub.async()->ListAndWatch(&context_, &request_, this);
    StartRead(&response_);
    StartCall();
  }
  ~DeviceStream() override {
    context_.TryCancel();
    MutexLock lock(mutex_);
    while (!done_) done_changed_.wait(mutex_);
  }

  void OnReadDone(bool ok) override {
    if (!ok) return;
    events_.listed(FromWire(response_));
    StartRead(&response_);
  }
  void OnDone(const grpc::Status& status) override {
    // A plugin that ends the stream by itself is gone as well.
    events_.gone(status.ok() ? Error(Code::kUnavailable, "EOF") : rpc::GoError(status));
    MutexLock lock(mutex_);
    done_ = true;
    done_changed_.notify_all();
  }

 private:
  const DevicePlugin::Events events_;
  grpc::ClientContext context_;
  const v1beta1::Empty request_;
  v1beta1::ListAndWatchResponse response_;
  Mutex mutex_;
  CondVar done_changed_;
  bool done_ KEELSON_GUARDED_BY(mutex_) = false;
};

class GrpcPlugin : public DevicePlugin {
 public:
  GrpcPlugin(std::string socket, const std::shared_ptr<grpc::Channel>& channel)
      : socket_(std::move(socket)), stub_(v1beta1::DevicePlugin::NewStub(channel)) {}

  const std::string& socket() const override { return socket_; }

  Result<PluginOptions> Options(std::stop_token stop) override {
    v1beta1::Empty request;
    v1beta1::DevicePluginOptions reply;
    KEELSON_RETURN_IF_ERROR(Invoke(&Stub::GetDevicePluginOptions, request, reply, kOptionsTimeout, stop));
    return PluginOptions{reply.pre_start_required(), reply.get_preferred_allocation_available()};
  }

  void Watch(Events events) override { stream_ = std::make_unique<DeviceStream>(*stub_, std::move(events)); }

  Result<Ids> PreferredAllocation(const Ids& available, const Ids& must_include, size_t size,
                                  std::stop_token stop) override {
    v1beta1::PreferredAllocationRequest request;
    v1beta1::PreferredAllocationResponse reply;
    auto& container = *request.add_container_requests();
    for (const std::string& id : available) container.add_available_deviceids(id);
    for (const std::string& id : must_include) container.add_must_include_deviceids(id);
    container.set_allocation_size(static_cast<int32_t>(size));
    KEELSON_RETURN_IF_ERROR(Invoke(&Stub::GetPreferredAllocation, request, reply, kNoDeadline, stop));
    if (reply.container_responses().empty()) return Ids();
    const auto& ids = reply.container_responses(0).deviceids();
    return Ids(ids.begin(), ids.end());
  }

  Result<Grant> Allocate(const Ids& ids, std::stop_token stop) override {
    v1beta1::AllocateRequest request;
    v1beta1::AllocateResponse reply;
    auto& container = *request.add_container_requests();
    for (const std::string& id : ids) container.add_devices_ids(id);
    KEELSON_RETURN_IF_ERROR(Invoke(&Stub::Allocate, request, reply, kNoDeadline, stop));
    if (reply.container_responses().empty()) {
      return Error(Code::kInternal,
                   "no containers return in allocation response "
                   "&AllocateResponse{ContainerResponses:[]*ContainerAllocateResponse{},}");
    }
    return FromWire(reply.container_responses(0));
  }

  Result<> PreStart(const Ids& ids, std::stop_token stop) override {
    v1beta1::PreStartContainerRequest request;
    v1beta1::PreStartContainerResponse reply;
    for (const std::string& id : ids) request.add_devices_ids(id);
    return Invoke(&Stub::PreStartContainer, request, reply, kPreStartTimeout, stop);
  }

 private:
  using Stub = v1beta1::DevicePlugin::Stub;

  template <typename Method, typename Request, typename Reply>
  Result<> Invoke(Method method, const Request& request, Reply& reply, milliseconds timeout,
                  std::stop_token stop) {
    rpc::Call call(timeout, std::move(stop));
    grpc::Status status = ((*stub_).*method)(call.context(), request, &reply);
    if (status.ok()) return {};
    return rpc::GoError(status);
  }

  const std::string socket_;
  const std::unique_ptr<Stub> stub_;
  std::unique_ptr<DeviceStream> stream_;  // after the stub, which it uses
};

}  // namespace

Result<std::unique_ptr<DevicePlugin>> DialPlugin(const std::string& socket, std::stop_token stop) {
  auto channel = rpc::UnixChannel(socket);
  if (!rpc::AwaitConnected(*channel, kDialTimeout, stop)) {
    return Error(Code::kTimeout, "failed to dial device plugin: context deadline exceeded");
  }
  return std::unique_ptr<DevicePlugin>(new GrpcPlugin(socket, channel));
}

}  // namespace keelson::kubelet::devices
