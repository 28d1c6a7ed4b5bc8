#include "kubelet/volume/csi/testing/fake_driver.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>

#include "lib/base/mutex.h"
#include "lib/rpc/server.h"

#include <grpcpp/grpcpp.h>

#include "lib/rpc/proto/csi.grpc.pb.h"
#include "lib/rpc/proto/pluginregistration.grpc.pb.h"

namespace keelson::kubelet::csi {

namespace fs = std::filesystem;
namespace wire = ::csi::v1;

namespace {

grpc::Status Refuse(grpc::StatusCode code, const std::string& message) { return {code, message}; }

// The pod's UID of a target path; it is the third last part (<uid>/volumes/<plugin>/<name>/mount) or the last one.
std::string PodOf(const fs::path& target) {
  if (target.filename() != "mount") return target.filename();
  return target.parent_path().parent_path().parent_path().parent_path().filename();
}

class Registrar : public pluginregistration::Registration::Service {
 public:
  explicit Registrar(std::string endpoint) : endpoint_(std::move(endpoint)) {}
  grpc::Status GetInfo(grpc::ServerContext*, const pluginregistration::InfoRequest*,
                       pluginregistration::PluginInfo* reply) override {
    reply->set_type("CSIPlugin");
    reply->set_name("disk.example.com");
    reply->set_endpoint(endpoint_);
    reply->add_supported_versions("1.0.0");
    return grpc::Status::OK;
  }
  grpc::Status NotifyRegistrationStatus(grpc::ServerContext*, const pluginregistration::RegistrationStatus*,
                                        pluginregistration::RegistrationStatusResponse*) override {
    return grpc::Status::OK;
  }

 private:
  const std::string endpoint_;
};

}  // namespace

struct FakeDriver::Impl : public wire::Node::Service, public wire::Identity::Service {
  struct Failure {
    grpc::Status status;
    int times = 0;
    bool after = false;
  };
  mutable Mutex mutex;
  std::set<std::string> capabilities KEELSON_GUARDED_BY(mutex);
  wire::NodeGetInfoResponse info KEELSON_GUARDED_BY(mutex);
  wire::NodeGetVolumeStatsResponse usage KEELSON_GUARDED_BY(mutex);
  std::map<std::string, Failure> failures KEELSON_GUARDED_BY(mutex);
  std::function<void(const std::string& method)> hook KEELSON_GUARDED_BY(mutex);
  std::vector<std::string> calls KEELSON_GUARDED_BY(mutex);
  std::vector<std::string> violations KEELSON_GUARDED_BY(mutex);
  std::map<std::string, std::string> requests KEELSON_GUARDED_BY(mutex);
  std::map<std::string, std::string> staged KEELSON_GUARDED_BY(mutex);     // path -> volume
  std::map<std::string, std::string> published KEELSON_GUARDED_BY(mutex);  // path -> volume
  std::string socket;
  std::unique_ptr<rpc::UnixServer> server;
  std::unique_ptr<Registrar> registrar;
  std::unique_ptr<rpc::UnixServer> registration;

  bool Has(const char* name) const KEELSON_REQUIRES(mutex) { return capabilities.count(name) > 0; }

  std::optional<grpc::Status> TakeFailure(const std::string& method, bool after) KEELSON_REQUIRES(mutex) {
    auto it = failures.find(method);
    if (it == failures.end() || it->second.after != after || it->second.times-- <= 0) return std::nullopt;
    return it->second.status;
  }

  // `work` is a call that changes something.
  template <typename Request, typename Work>
  grpc::Status Do(const std::string& method, const std::string& what, const Request& request,
                  const Work& work) {
    std::function<void(const std::string& method)> done;
    grpc::Status status;
    {
      MutexLock lock(mutex);
      requests[method] = request.ShortDebugString();
      calls.push_back(what);
      if (auto failure = TakeFailure(method, false)) return *failure;
      status = work();
      done = hook;
      if (auto failure = TakeFailure(method, true)) status = *failure;
    }
    if (done) done(method);
    return status;
  }
  template <typename Request>
  grpc::Status Query(const std::string& method, const Request& request) KEELSON_REQUIRES(mutex) {
    requests[method] = request.ShortDebugString();
    auto failure = TakeFailure(method, false);
    return failure ? *failure : grpc::Status::OK;
  }

  grpc::Status GetPluginInfo(grpc::ServerContext*, const wire::GetPluginInfoRequest*,
                             wire::GetPluginInfoResponse* reply) override {
    reply->set_name("disk.example.com");
    reply->set_vendor_version("1.0");
    return grpc::Status::OK;
  }
  grpc::Status Probe(grpc::ServerContext*, const wire::ProbeRequest*, wire::ProbeResponse* reply) override {
    reply->mutable_ready()->set_value(true);
    return grpc::Status::OK;
  }

  grpc::Status NodeGetInfo(grpc::ServerContext*, const wire::NodeGetInfoRequest* request,
                           wire::NodeGetInfoResponse* reply) override {
    MutexLock lock(mutex);
    *reply = info;
    return Query("NodeGetInfo", *request);
  }
  grpc::Status NodeGetCapabilities(grpc::ServerContext*, const wire::NodeGetCapabilitiesRequest* request,
                                   wire::NodeGetCapabilitiesResponse* reply) override {
    MutexLock lock(mutex);
    for (const std::string& name : capabilities) {
      wire::NodeServiceCapability::RPC::Type type = wire::NodeServiceCapability::RPC::UNKNOWN;
      if (!wire::NodeServiceCapability::RPC::Type_Parse(name, &type)) std::abort();
      reply->add_capabilities()->mutable_rpc()->set_type(type);
    }
    return Query("NodeGetCapabilities", *request);
  }
  grpc::Status NodeGetVolumeStats(grpc::ServerContext*, const wire::NodeGetVolumeStatsRequest* request,
                                  wire::NodeGetVolumeStatsResponse* reply) override {
    MutexLock lock(mutex);
    *reply = usage;
    return Query("NodeGetVolumeStats", *request);
  }

  grpc::Status NodeStageVolume(grpc::ServerContext*, const wire::NodeStageVolumeRequest* request,
                               wire::NodeStageVolumeResponse*) override {
    return Do("NodeStageVolume", "stage " + request->volume_id(), *request, [&]() KEELSON_REQUIRES(mutex) {
      if (!Has("STAGE_UNSTAGE_VOLUME")) violations.push_back("staged without the capability");
      if (!fs::is_directory(request->staging_target_path())) {
        violations.push_back("staged where there is no directory");
      }
      staged[request->staging_target_path()] = request->volume_id();
      return grpc::Status::OK;
    });
  }
  grpc::Status NodeUnstageVolume(grpc::ServerContext*, const wire::NodeUnstageVolumeRequest* request,
                                 wire::NodeUnstageVolumeResponse*) override {
    return Do("NodeUnstageVolume", "unstage " + request->volume_id(), *request,
              [&]() KEELSON_REQUIRES(mutex) {
                for (const auto& [path, volume] : published) {
                  if (volume == request->volume_id()) {
                    violations.push_back("unstaged while published to " + path);
                  }
                }
                staged.erase(request->staging_target_path());
                return grpc::Status::OK;
              });
  }
  grpc::Status NodePublishVolume(grpc::ServerContext*, const wire::NodePublishVolumeRequest* request,
                                 wire::NodePublishVolumeResponse*) override {
    const fs::path target = request->target_path();
    return Do("NodePublishVolume", "publish " + request->volume_id() + " " + PodOf(target), *request,
              [&]() KEELSON_REQUIRES(mutex) {
                const std::string& staging = request->staging_target_path();
                if (!staging.empty() && !staged.count(staging)) {
                  violations.push_back("published without being staged");
                }
                if (!fs::is_directory(target.parent_path())) {
                  return Refuse(grpc::StatusCode::INTERNAL, "no directory for the target");
                }
                if (request->volume_capability().has_block()) {
                  std::ofstream(target.c_str()) << "device";
                } else {
                  fs::create_directory(target);
                }
                published[target] = request->volume_id();
                return grpc::Status::OK;
              });
  }
  grpc::Status NodeUnpublishVolume(grpc::ServerContext*, const wire::NodeUnpublishVolumeRequest* request,
                                   wire::NodeUnpublishVolumeResponse*) override {
    const fs::path target = request->target_path();
    return Do("NodeUnpublishVolume", "unpublish " + request->volume_id() + " " + PodOf(target), *request,
              [&]() KEELSON_REQUIRES(mutex) {
                std::error_code ignored;
                fs::remove_all(target, ignored);
                published.erase(target);
                return grpc::Status::OK;
              });
  }
  grpc::Status NodeExpandVolume(grpc::ServerContext*, const wire::NodeExpandVolumeRequest* request,
                                wire::NodeExpandVolumeResponse* reply) override {
    reply->set_capacity_bytes(request->capacity_range().required_bytes());
    return Do("NodeExpandVolume", "expand " + request->volume_id(), *request, [&]() KEELSON_REQUIRES(mutex) {
      if (!Has("EXPAND_VOLUME")) violations.push_back("expanded without the capability");
      return grpc::Status::OK;
    });
  }
};

FakeDriver::FakeDriver(const std::string& socket) : impl_(std::make_unique<Impl>()) {
  wire::Node::Service& node = *impl_;
  wire::Identity::Service& identity = *impl_;
  auto server = rpc::UnixServer::Start(socket, {&node, &identity});
  if (!server) std::abort();
  impl_->socket = socket;
  impl_->server = std::move(*server);
}

FakeDriver::~FakeDriver() {
  impl_->registration.reset();
  impl_->server.reset();
}

void FakeDriver::RegisterAt(const std::string& registration_socket) {
  impl_->registration.reset();
  impl_->registrar = std::make_unique<Registrar>(impl_->socket);
  auto server = rpc::UnixServer::Start(registration_socket, {impl_->registrar.get()});
  if (!server) std::abort();
  impl_->registration = std::move(*server);
}

void FakeDriver::SetCapabilities(const std::set<std::string>& names) {
  MutexLock lock(impl_->mutex);
  impl_->capabilities = names;
}

void FakeDriver::SetInfo(const std::string& node_id, int64_t max_volumes,
                         const std::map<std::string, std::string>& topology) {
  MutexLock lock(impl_->mutex);
  impl_->info.Clear();
  impl_->info.set_node_id(node_id);
  impl_->info.set_max_volumes_per_node(max_volumes);
  for (const auto& [key, value] : topology) {
    (*impl_->info.mutable_accessible_topology()->mutable_segments())[key] = value;
  }
}

void FakeDriver::SetUsage(const std::vector<int64_t>& bytes, const std::vector<int64_t>& inodes,
                          const std::string& abnormal) {
  wire::NodeGetVolumeStatsResponse usage;
  auto add = [&](const std::vector<int64_t>& amounts, wire::VolumeUsage::Unit unit) {
    auto& item = *usage.add_usage();
    item.set_unit(unit);
    item.set_total(amounts.at(0));
    item.set_available(amounts.at(1));
    item.set_used(amounts.at(2));
  };
  add(bytes, wire::VolumeUsage::BYTES);
  add(inodes, wire::VolumeUsage::INODES);
  usage.mutable_volume_condition()->set_abnormal(!abnormal.empty());
  usage.mutable_volume_condition()->set_message(abnormal);
  MutexLock lock(impl_->mutex);
  impl_->usage = usage;
}

void FakeDriver::Fail(const std::string& method, int code, const std::string& message, int times,
                      bool after) {
  MutexLock lock(impl_->mutex);
  impl_->failures[method] = {grpc::Status(static_cast<grpc::StatusCode>(code), message), times, after};
}

void FakeDriver::OnDone(std::function<void(const std::string& method)> hook) {
  MutexLock lock(impl_->mutex);
  impl_->hook = std::move(hook);
}

std::vector<std::string> FakeDriver::Calls() {
  MutexLock lock(impl_->mutex);
  return std::exchange(impl_->calls, {});
}

std::string FakeDriver::LastRequest(const std::string& method) const {
  MutexLock lock(impl_->mutex);
  auto it = impl_->requests.find(method);
  return it == impl_->requests.end() ? "" : it->second;
}

std::vector<std::string> FakeDriver::Violations() const {
  MutexLock lock(impl_->mutex);
  return impl_->violations;
}

std::set<std::string> FakeDriver::Staged() const {
  MutexLock lock(impl_->mutex);
  std::set<std::string> out;
  for (const auto& [path, volume] : impl_->staged) out.insert(path);
  return out;
}

std::set<std::string> FakeDriver::Published() const {
  MutexLock lock(impl_->mutex);
  std::set<std::string> out;
  for (const auto& [path, volume] : impl_->published) out.insert(path);
  return out;
}

}  // namespace keelson::kubelet::csi
