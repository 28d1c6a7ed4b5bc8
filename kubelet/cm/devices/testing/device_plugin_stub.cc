#include "kubelet/cm/devices/testing/device_plugin_stub.h"

#include <cstdlib>

#include "lib/base/mutex.h"
#include "lib/rpc/channel.h"
#include "lib/rpc/server.h"

#include <grpcpp/grpcpp.h>

#include "lib/rpc/proto/deviceplugin.grpc.pb.h"

namespace keelson::kubelet::devices {

struct DevicePluginStub::Impl : v1beta1::DevicePlugin::Service {
  grpc::Status GetDevicePluginOptions(grpc::ServerContext*, const v1beta1::Empty*,
                                      v1beta1::DevicePluginOptions* reply) override {
    reply->set_pre_start_required(true);
    reply->set_get_preferred_allocation_available(true);
    return grpc::Status::OK;
  }

  grpc::Status ListAndWatch(grpc::ServerContext*, const v1beta1::Empty*,
                            grpc::ServerWriter<v1beta1::ListAndWatchResponse>* writer) override {
    for (int sent = 0;;) {
      v1beta1::ListAndWatchResponse list;
      {
        MutexLock lock(mutex);
        while (sent == version && !ending) changed.wait(mutex);
        if (ending) return grpc::Status::OK;
        sent = version;
        for (const auto& [id, device] : devices) {
          auto& item = *list.add_devices();
          item.set_id(id);
          item.set_health(device.healthy ? "Healthy" : "Unhealthy");
          if (device.nodes) {
            for (int64_t node : *device.nodes) item.mutable_topology()->add_nodes()->set_id(node);
          }
        }
      }
      if (!writer->Write(list)) return grpc::Status::OK;
    }
  }

  grpc::Status GetPreferredAllocation(grpc::ServerContext*,
                                      const v1beta1::PreferredAllocationRequest* request,
                                      v1beta1::PreferredAllocationResponse* reply) override {
    for (const auto& container : request->container_requests()) {
      const auto& available = container.available_deviceids();
      auto& answer = *reply->add_container_responses();
      for (int i = 0; i < container.allocation_size() && i < available.size(); ++i) {
        answer.add_deviceids(available[available.size() - 1 - i]);
      }
    }
    return grpc::Status::OK;
  }

  grpc::Status Allocate(grpc::ServerContext*, const v1beta1::AllocateRequest* request,
                        v1beta1::AllocateResponse* reply) override {
    MutexLock lock(mutex);
    ++allocations;
    for (const auto& container : request->container_requests()) {
      auto& answer = *reply->add_container_responses();
      for (const std::string& id : container.devices_ids()) {
        if (id == "broken") return grpc::Status(grpc::StatusCode::UNKNOWN, "cannot set up broken");
        (*answer.mutable_envs())["DEVICES"] += id;
        auto& device = *answer.add_devices();
        device.set_container_path("/dev/" + id);
        device.set_host_path("/dev/null");
        device.set_permissions("rw");
        answer.add_cdi_devices()->set_name("example.com/dev=" + id);
      }
    }
    return grpc::Status::OK;
  }

  grpc::Status PreStartContainer(grpc::ServerContext*, const v1beta1::PreStartContainerRequest*,
                                 v1beta1::PreStartContainerResponse*) override {
    return grpc::Status::OK;
  }

  std::string name;
  std::unique_ptr<rpc::UnixServer> server;
  Mutex mutex;
  CondVar changed;
  DeviceMap devices KEELSON_GUARDED_BY(mutex);
  int version KEELSON_GUARDED_BY(mutex) = 0, allocations KEELSON_GUARDED_BY(mutex) = 0;
  bool ending KEELSON_GUARDED_BY(mutex) = false;
};

DevicePluginStub::DevicePluginStub(std::string socket) : impl_(std::make_unique<Impl>()) {
  impl_->name = socket.substr(socket.rfind('/') + 1);
  auto server = rpc::UnixServer::Start(socket, {impl_.get()});
  if (!server) std::abort();
  impl_->server = std::move(*server);
}

DevicePluginStub::~DevicePluginStub() {
  {
    MutexLock lock(impl_->mutex);
    impl_->ending = true;
    impl_->changed.notify_all();
  }
  impl_->server.reset();
}

void DevicePluginStub::SetDevices(DeviceMap devices) {
  MutexLock lock(impl_->mutex);
  impl_->devices = std::move(devices);
  ++impl_->version;
  impl_->changed.notify_all();
}

std::string DevicePluginStub::Register(const std::string& kubelet_socket, const std::string& resource,
                                       const std::string& version) {
  auto stub = v1beta1::Registration::NewStub(rpc::UnixChannel(kubelet_socket));
  v1beta1::RegisterRequest request;
  v1beta1::Empty reply;
  request.set_version(version);
  request.set_endpoint(impl_->name);
  request.set_resource_name(resource);
  rpc::Call call(std::chrono::seconds(30));
  grpc::Status status = stub->Register(call.context(), request, &reply);
  return status.ok() ? "" : status.error_message();
}

int DevicePluginStub::allocations() const {
  MutexLock lock(impl_->mutex);
  return impl_->allocations;
}

}  // namespace keelson::kubelet::devices
