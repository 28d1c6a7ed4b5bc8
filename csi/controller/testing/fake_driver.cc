#include "csi/controller/testing/fake_driver.h"

#include <cstdlib>
#include <optional>

#include "lib/base/mutex.h"
#include "lib/rpc/server.h"

#include <grpcpp/grpcpp.h>

#include "lib/rpc/proto/csi.grpc.pb.h"

namespace keelson::csi::controller {

struct FakeDriver::Impl : public v1::Identity::Service,
                          public v1::Controller::Service,
                          public v1::Node::Service {
  struct Failure {
    grpc::Status status;
    int times = 0;
    bool after = false;
  };
  struct Made {
    std::string id;
    int64_t bytes = 0;
  };
  std::string socket;
  std::unique_ptr<rpc::UnixServer> server;
  mutable Mutex mutex;
  std::string name KEELSON_GUARDED_BY(mutex) = FakeDriver::kName;
  bool ready KEELSON_GUARDED_BY(mutex) = true, topology KEELSON_GUARDED_BY(mutex) = false,
             node_expand KEELSON_GUARDED_BY(mutex) = false;
  std::set<std::string> capabilities KEELSON_GUARDED_BY(mutex){"CREATE_DELETE_VOLUME"};
  std::map<std::string, std::string> node_topology KEELSON_GUARDED_BY(mutex);
  std::map<std::string, Failure> failures KEELSON_GUARDED_BY(mutex);
  std::function<void(const std::string&)> done KEELSON_GUARDED_BY(mutex);
  std::function<void(google::protobuf::Message&)> answer KEELSON_GUARDED_BY(mutex);
  std::vector<std::string> calls KEELSON_GUARDED_BY(mutex);
  std::map<std::string, int> counts KEELSON_GUARDED_BY(mutex);
  std::map<std::string, std::string> requests KEELSON_GUARDED_BY(mutex);
  v1::CreateVolumeRequest last_create KEELSON_GUARDED_BY(mutex);
  std::map<std::string, Made> volumes KEELSON_GUARDED_BY(mutex);  // by name
  std::set<std::string> published KEELSON_GUARDED_BY(mutex);
  std::map<std::string, int64_t> capacities KEELSON_GUARDED_BY(mutex);  // by zone
  struct Taken {
    std::string volume;
    int64_t bytes = 0;
  };
  std::map<std::string, Taken> snapshots KEELSON_GUARDED_BY(mutex);  // by id
  bool snapshots_ready KEELSON_GUARDED_BY(mutex) = true;
  std::map<std::string, std::string> abnormal KEELSON_GUARDED_BY(mutex);  // by volume id

  std::optional<grpc::Status> TakeFailure(const std::string& method, bool after) KEELSON_REQUIRES(mutex) {
    auto it = failures.find(method);
    if (it == failures.end() || it->second.after != after || it->second.times <= 0) return std::nullopt;
    --it->second.times;
    return it->second.status;
  }

  template <typename Request, typename Reply, typename Work>
  grpc::Status Do(const std::string& method, const std::string& subject, const Request& request, Reply& reply,
                  const Work& work) {
    std::function<void(const std::string&)> hook;
    grpc::Status status;
    {
      MutexLock lock(mutex);
      requests[method] = request.ShortDebugString();
      calls.push_back(method + " " + subject);
      ++counts[method];
      if (auto failure = TakeFailure(method, false)) return *failure;
      status = work();
      if (answer && status.ok()) answer(reply);
      if (auto failure = TakeFailure(method, true)) status = *failure;
      hook = done;
    }
    if (hook) hook(method);
    return status;
  }
  Made* ById(const std::string& id) KEELSON_REQUIRES(mutex) {
    for (auto& [volume_name, made] : volumes) {
      if (made.id == id) return &made;
    }
    return nullptr;
  }

  grpc::Status GetPluginInfo(grpc::ServerContext*, const v1::GetPluginInfoRequest*,
                             v1::GetPluginInfoResponse* reply) override {
    MutexLock lock(mutex);
    reply->set_name(name);
    reply->set_vendor_version("1.0");
    return grpc::Status::OK;
  }
  grpc::Status GetPluginCapabilities(grpc::ServerContext*, const v1::GetPluginCapabilitiesRequest*,
                                     v1::GetPluginCapabilitiesResponse* reply) override {
    using Service = v1::PluginCapability::Service;
    MutexLock lock(mutex);
    reply->add_capabilities()->mutable_service()->set_type(Service::CONTROLLER_SERVICE);
    if (topology) {
      reply->add_capabilities()->mutable_service()->set_type(Service::VOLUME_ACCESSIBILITY_CONSTRAINTS);
    }
    return grpc::Status::OK;
  }
  grpc::Status Probe(grpc::ServerContext*, const v1::ProbeRequest*, v1::ProbeResponse* reply) override {
    MutexLock lock(mutex);
    reply->mutable_ready()->set_value(ready);
    return grpc::Status::OK;
  }
  grpc::Status ControllerGetCapabilities(grpc::ServerContext*, const v1::ControllerGetCapabilitiesRequest*,
                                         v1::ControllerGetCapabilitiesResponse* reply) override {
    MutexLock lock(mutex);
    for (const std::string& one : capabilities) {
      v1::ControllerServiceCapability::RPC::Type type = v1::ControllerServiceCapability::RPC::UNKNOWN;
      if (!v1::ControllerServiceCapability::RPC::Type_Parse(one, &type)) std::abort();
      reply->add_capabilities()->mutable_rpc()->set_type(type);
    }
    return grpc::Status::OK;
  }
  grpc::Status NodeGetCapabilities(grpc::ServerContext*, const v1::NodeGetCapabilitiesRequest*,
                                   v1::NodeGetCapabilitiesResponse* reply) override {
    MutexLock lock(mutex);
    if (!node_expand) return {grpc::StatusCode::UNIMPLEMENTED, "no node service"};
    reply->add_capabilities()->mutable_rpc()->set_type(v1::NodeServiceCapability::RPC::EXPAND_VOLUME);
    return grpc::Status::OK;
  }
  grpc::Status NodeGetInfo(grpc::ServerContext*, const v1::NodeGetInfoRequest*,
                           v1::NodeGetInfoResponse* reply) override {
    MutexLock lock(mutex);
    reply->set_node_id("node-id");
    for (const auto& [key, value] : node_topology) {
      (*reply->mutable_accessible_topology()->mutable_segments())[key] = value;
    }
    return grpc::Status::OK;
  }

  grpc::Status CreateVolume(grpc::ServerContext*, const v1::CreateVolumeRequest* request,
                            v1::CreateVolumeResponse* reply) override {
    return Do("CreateVolume", request->name(), *request, *reply, [&]() KEELSON_REQUIRES(mutex) {
      last_create = *request;
      Made& made = volumes[request->name()];
      if (made.id.empty()) made = {"id-" + request->name(), request->capacity_range().required_bytes()};
      if (made.bytes < request->capacity_range().required_bytes()) {
        return grpc::Status(grpc::StatusCode::ALREADY_EXISTS, "the volume has another size");
      }
      v1::Volume& volume = *reply->mutable_volume();
      volume.set_volume_id(made.id);
      volume.set_capacity_bytes(made.bytes);
      (*volume.mutable_volume_context())["pool"] = "p1";
      if (request->has_volume_content_source()) {
        *volume.mutable_content_source() = request->volume_content_source();
      }
      if (request->accessibility_requirements().preferred_size() > 0) {
        *volume.add_accessible_topology() = request->accessibility_requirements().preferred(0);
      }
      return grpc::Status::OK;
    });
  }
  grpc::Status DeleteVolume(grpc::ServerContext*, const v1::DeleteVolumeRequest* request,
                            v1::DeleteVolumeResponse* reply) override {
    return Do("DeleteVolume", request->volume_id(), *request, *reply, [&]() KEELSON_REQUIRES(mutex) {
      for (const std::string& one : published) {
        if (one.compare(0, request->volume_id().size() + 1, request->volume_id() + "@") == 0) {
          return grpc::Status(grpc::StatusCode::FAILED_PRECONDITION, "the volume is published");
        }
      }
      for (auto it = volumes.begin(); it != volumes.end();) {
        it = it->second.id == request->volume_id() ? volumes.erase(it) : std::next(it);
      }
      return grpc::Status::OK;
    });
  }
  grpc::Status ControllerPublishVolume(grpc::ServerContext*,
                                       const v1::ControllerPublishVolumeRequest* request,
                                       v1::ControllerPublishVolumeResponse* reply) override {
    const std::string subject = request->volume_id() + "@" + request->node_id();
    return Do("ControllerPublishVolume", subject, *request, *reply, [&]() KEELSON_REQUIRES(mutex) {
      published.insert(subject);
      (*reply->mutable_publish_context())["device"] = "/dev/x";
      return grpc::Status::OK;
    });
  }
  grpc::Status ControllerUnpublishVolume(grpc::ServerContext*,
                                         const v1::ControllerUnpublishVolumeRequest* request,
                                         v1::ControllerUnpublishVolumeResponse* reply) override {
    const std::string subject = request->volume_id() + "@" + request->node_id();
    return Do("ControllerUnpublishVolume", subject, *request, *reply, [&]() KEELSON_REQUIRES(mutex) {
      published.erase(subject);
      return grpc::Status::OK;
    });
  }
  grpc::Status ControllerExpandVolume(grpc::ServerContext*, const v1::ControllerExpandVolumeRequest* request,
                                      v1::ControllerExpandVolumeResponse* reply) override {
    return Do("ControllerExpandVolume", request->volume_id(), *request, *reply,
              [&]() KEELSON_REQUIRES(mutex) {
                Made* made = ById(request->volume_id());
                if (!made) return grpc::Status(grpc::StatusCode::NOT_FOUND, "no such volume");
                made->bytes = std::max(made->bytes, request->capacity_range().required_bytes());
                reply->set_capacity_bytes(made->bytes);
                reply->set_node_expansion_required(request->volume_capability().has_mount());
                return grpc::Status::OK;
              });
  }
  grpc::Status ControllerModifyVolume(grpc::ServerContext*, const v1::ControllerModifyVolumeRequest* request,
                                      v1::ControllerModifyVolumeResponse* reply) override {
    return Do("ControllerModifyVolume", request->volume_id(), *request, *reply,
              [&]() KEELSON_REQUIRES(mutex) { return grpc::Status::OK; });
  }
  void Describe(const std::string& id, v1::Snapshot& out) KEELSON_REQUIRES(mutex) {
    out.set_snapshot_id(id);
    out.set_source_volume_id(snapshots[id].volume);
    out.set_size_bytes(snapshots[id].bytes);
    out.set_ready_to_use(snapshots_ready);
    out.mutable_creation_time()->set_seconds(1'700'000'000);
  }
  grpc::Status CreateSnapshot(grpc::ServerContext*, const v1::CreateSnapshotRequest* request,
                              v1::CreateSnapshotResponse* reply) override {
    return Do("CreateSnapshot", request->name(), *request, *reply, [&]() KEELSON_REQUIRES(mutex) {
      const std::string id = "id-" + request->name();
      const Made* made = ById(request->source_volume_id());
      if (!made) return grpc::Status(grpc::StatusCode::NOT_FOUND, "no such volume");
      snapshots.try_emplace(id, Taken{request->source_volume_id(), made->bytes});
      Describe(id, *reply->mutable_snapshot());
      return grpc::Status::OK;
    });
  }
  grpc::Status DeleteSnapshot(grpc::ServerContext*, const v1::DeleteSnapshotRequest* request,
                              v1::DeleteSnapshotResponse* reply) override {
    return Do("DeleteSnapshot", request->snapshot_id(), *request, *reply, [&]() KEELSON_REQUIRES(mutex) {
      snapshots.erase(request->snapshot_id());
      return grpc::Status::OK;
    });
  }
  grpc::Status ListSnapshots(grpc::ServerContext*, const v1::ListSnapshotsRequest* request,
                             v1::ListSnapshotsResponse* reply) override {
    return Do("ListSnapshots", request->snapshot_id(), *request, *reply, [&]() KEELSON_REQUIRES(mutex) {
      if (snapshots.count(request->snapshot_id()) > 0) {
        Describe(request->snapshot_id(), *reply->add_entries()->mutable_snapshot());
      }
      return grpc::Status::OK;
    });
  }
  template <typename Status>
  void Diagnose(const std::string& id, Status& status) KEELSON_REQUIRES(mutex) {
    const auto found = abnormal.find(id);
    status.mutable_volume_condition()->set_abnormal(found != abnormal.end());
    if (found != abnormal.end()) status.mutable_volume_condition()->set_message(found->second);
  }
  // Pages of one volume.
  grpc::Status ListVolumes(grpc::ServerContext*, const v1::ListVolumesRequest* request,
                           v1::ListVolumesResponse* reply) override {
    return Do("ListVolumes", request->starting_token(), *request, *reply, [&]() KEELSON_REQUIRES(mutex) {
      auto it = volumes.begin();
      while (it != volumes.end() && it->first <= request->starting_token()) ++it;
      if (it == volumes.end()) return grpc::Status::OK;
      auto& entry = *reply->add_entries();
      entry.mutable_volume()->set_volume_id(it->second.id);
      Diagnose(it->second.id, *entry.mutable_status());
      if (std::next(it) != volumes.end()) reply->set_next_token(it->first);
      return grpc::Status::OK;
    });
  }
  grpc::Status ControllerGetVolume(grpc::ServerContext*, const v1::ControllerGetVolumeRequest* request,
                                   v1::ControllerGetVolumeResponse* reply) override {
    return Do("ControllerGetVolume", request->volume_id(), *request, *reply, [&]() KEELSON_REQUIRES(mutex) {
      if (!ById(request->volume_id())) return grpc::Status(grpc::StatusCode::NOT_FOUND, "no such volume");
      reply->mutable_volume()->set_volume_id(request->volume_id());
      Diagnose(request->volume_id(), *reply->mutable_status());
      return grpc::Status::OK;
    });
  }
  grpc::Status GetCapacity(grpc::ServerContext*, const v1::GetCapacityRequest* request,
                           v1::GetCapacityResponse* reply) override {
    const auto& segments = request->accessible_topology().segments();
    const auto zone = segments.find("zone");
    return Do("GetCapacity", "", *request, *reply, [&]() KEELSON_REQUIRES(mutex) {
      if (request->parameters_size() > 0) {
        return grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "a parameter");
      }
      reply->set_available_capacity(zone == segments.end() ? 0 : capacities[zone->second]);
      return grpc::Status::OK;
    });
  }
};

FakeDriver::FakeDriver(const std::string& socket) : impl_(std::make_unique<Impl>()) {
  impl_->socket = socket;
  Start();
}
// Calls that are still running use what the driver holds.
FakeDriver::~FakeDriver() { Stop(); }

void FakeDriver::Start() {
  v1::Identity::Service& identity = *impl_;
  v1::Controller::Service& controller = *impl_;
  v1::Node::Service& node = *impl_;
  auto server = rpc::UnixServer::Start(impl_->socket, {&identity, &controller, &node});
  if (!server) std::abort();
  impl_->server = *std::move(server);
}
void FakeDriver::Stop() { impl_->server.reset(); }

void FakeDriver::SetCapabilities(const std::set<std::string>& capabilities, bool topology) {
  MutexLock lock(impl_->mutex);
  impl_->capabilities = capabilities;
  impl_->topology = topology;
}
void FakeDriver::SetName(const std::string& name) {
  MutexLock lock(impl_->mutex);
  impl_->name = name;
}
void FakeDriver::SetNodeTopology(const std::map<std::string, std::string>& segments) {
  MutexLock lock(impl_->mutex);
  impl_->node_topology = segments;
}
void FakeDriver::SetNodeExpand(bool expand) {
  MutexLock lock(impl_->mutex);
  impl_->node_expand = expand;
}
void FakeDriver::SetCapacity(const std::string& zone, int64_t bytes) {
  MutexLock lock(impl_->mutex);
  impl_->capacities[zone] = bytes;
}
void FakeDriver::SetReady(bool ready) {
  MutexLock lock(impl_->mutex);
  impl_->ready = ready;
}
void FakeDriver::Fail(const std::string& method, int code, const std::string& message, int times,
                      bool after) {
  MutexLock lock(impl_->mutex);
  impl_->failures[method] = {grpc::Status(static_cast<grpc::StatusCode>(code), message), times, after};
}
void FakeDriver::OnDone(std::function<void(const std::string& method)> hook) {
  MutexLock lock(impl_->mutex);
  impl_->done = std::move(hook);
}
void FakeDriver::OnAnswer(std::function<void(google::protobuf::Message& reply)> hook) {
  MutexLock lock(impl_->mutex);
  impl_->answer = std::move(hook);
}
std::vector<std::string> FakeDriver::Calls() {
  MutexLock lock(impl_->mutex);
  return std::exchange(impl_->calls, {});
}
int FakeDriver::Count(const std::string& method) const {
  MutexLock lock(impl_->mutex);
  const auto it = impl_->counts.find(method);
  return it == impl_->counts.end() ? 0 : it->second;
}
std::string FakeDriver::LastRequest(const std::string& method) const {
  MutexLock lock(impl_->mutex);
  const auto it = impl_->requests.find(method);
  return it == impl_->requests.end() ? "" : it->second;
}
v1::CreateVolumeRequest FakeDriver::LastCreate() const {
  MutexLock lock(impl_->mutex);
  return impl_->last_create;
}
std::map<std::string, int64_t> FakeDriver::Volumes() const {
  MutexLock lock(impl_->mutex);
  std::map<std::string, int64_t> out;
  for (const auto& [name, made] : impl_->volumes) out[made.id] = made.bytes;
  return out;
}
std::set<std::string> FakeDriver::Published() const {
  MutexLock lock(impl_->mutex);
  return impl_->published;
}
std::map<std::string, std::string> FakeDriver::Snapshots() const {
  MutexLock lock(impl_->mutex);
  std::map<std::string, std::string> out;
  for (const auto& [id, taken] : impl_->snapshots) out[id] = taken.volume;
  return out;
}
void FakeDriver::AddSnapshot(const std::string& id, int64_t bytes) {
  MutexLock lock(impl_->mutex);
  impl_->snapshots[id] = {"", bytes};
}
void FakeDriver::SetSnapshotsReady(bool ready) {
  MutexLock lock(impl_->mutex);
  impl_->snapshots_ready = ready;
}
void FakeDriver::SetAbnormal(const std::string& volume_id, const std::string& message) {
  MutexLock lock(impl_->mutex);
  if (message.empty()) {
    impl_->abnormal.erase(volume_id);
  } else {
    impl_->abnormal[volume_id] = message;
  }
}
void FakeDriver::AddVolume(const std::string& id, int64_t bytes) {
  MutexLock lock(impl_->mutex);
  impl_->volumes["given " + id] = {id, bytes};
}

}  // namespace keelson::csi::controller
