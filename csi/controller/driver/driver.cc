#include "csi/controller/driver/driver.h"

#include "lib/base/log.h"
#include "lib/client/backoff.h"
#include "lib/metrics/metrics.h"
// Before gRPC's headers: both define thread-safety macros, and a system header may do so again.
#include "lib/rpc/channel.h"

#include <grpcpp/grpcpp.h>

#include "lib/rpc/proto/csi.grpc.pb.h"

namespace keelson::csi::controller {
namespace {

constexpr std::chrono::seconds kProbeEvery{1};

void Count(const std::string& driver, const std::string& method, const grpc::Status& status, double seconds) {
  static metrics::Family& operations =
      metrics::Histograms("csi_sidecar_operations_seconds",
                          "Container Storage Interface operation duration with gRPC error code status total",
                          {.1, .25, .5, 1, 2.5, 5, 10, 15, 25, 50, 120, 300, 600},
                          {"driver_name", "method_name", "grpc_status_code"});
  operations.HistogramWith({driver, method, rpc::CodeName(status)}).Observe(seconds);
}

Code CodeOf(const grpc::Status& status, const Error& error) {
  switch (status.error_code()) {
    case grpc::StatusCode::INVALID_ARGUMENT:
      return Code::kBadRequest;
    case grpc::StatusCode::FAILED_PRECONDITION:  // final, unlike ABORTED
      return Code::kInvalid;
    case grpc::StatusCode::CANCELLED:  // by the driver
      return Code::kUnavailable;
    default:
      return error.code();
  }
}

std::string PathOf(const std::string& address) {
  for (const std::string_view scheme : {"unix://", "unix:"}) {
    if (address.compare(0, scheme.size(), scheme) == 0) return address.substr(scheme.size());
  }
  return address;
}

}  // namespace

struct Driver::Stubs {
  explicit Stubs(const std::shared_ptr<grpc::Channel>& channel)
      : identity(v1::Identity::NewStub(channel)),
        controller(v1::Controller::NewStub(channel)),
        node(v1::Node::NewStub(channel)) {}
  const std::unique_ptr<v1::Identity::Stub> identity;
  const std::unique_ptr<v1::Controller::Stub> controller;
  const std::unique_ptr<v1::Node::Stub> node;
};

bool IsFinal(const Error& error) {
  switch (error.code()) {
    case Code::kTimeout:
    case Code::kUnavailable:
    case Code::kConflict:
    case Code::kCancelled:
      return false;
    default:
      return true;
  }
}

Driver::Driver(DriverOptions options)
    : options_(std::move(options)),
      stubs_(std::make_unique<Stubs>(rpc::UnixChannel(PathOf(options_.address)))) {}

Driver::~Driver() = default;

template <typename Method, typename Stub, typename Request, typename Reply>
Result<> Driver::Invoke(Stub& stub, Method method, const char* name, const Request& request, Reply& reply,
                        const std::stop_token& stop) {
  const SteadyTime begin = SteadyTime::clock::now();
  rpc::Call call(options_.timeout, stop);
  const grpc::Status status = (stub.*method)(call.context(), request, &reply);
  Count(name_.empty() ? "unknown-driver" : name_, name, status,
        std::chrono::duration<double>(SteadyTime::clock::now() - begin).count());
  if (status.ok()) return {};
  const Error error = rpc::GoError(status);
  if (stop.stop_requested()) return Error(Code::kCancelled, error.message());
  if (status.error_code() == grpc::StatusCode::UNAVAILABLE) {
    MutexLock lock(mutex_);
    info_ = nullptr;
  }
  return Error(CodeOf(status, error), error.message());
}

Result<> Driver::Probe(std::stop_token stop) {
  v1::ProbeResponse reply;
  KEELSON_RETURN_IF_ERROR(Invoke(*stubs_->identity, &v1::Identity::Stub::Probe, "/csi.v1.Identity/Probe",
                                 v1::ProbeRequest(), reply, stop));
  if (reply.has_ready() && !reply.ready().value()) {
    return Error(Code::kUnavailable, "the driver is not ready");
  }
  return {};
}

Result<DriverInfo> Driver::Ask(std::stop_token stop) {
  DriverInfo out;
  v1::GetPluginInfoResponse plugin;
  KEELSON_RETURN_IF_ERROR(Invoke(*stubs_->identity, &v1::Identity::Stub::GetPluginInfo,
                                 "/csi.v1.Identity/GetPluginInfo", v1::GetPluginInfoRequest(), plugin, stop));
  out.name = plugin.name();
  out.vendor_version = plugin.vendor_version();
  if (out.name.empty()) {
    return Error(Code::kInvalid, "the driver at " + options_.address + " has no name");
  }
  v1::GetPluginCapabilitiesResponse capabilities;
  KEELSON_RETURN_IF_ERROR(Invoke(*stubs_->identity, &v1::Identity::Stub::GetPluginCapabilities,
                                 "/csi.v1.Identity/GetPluginCapabilities", v1::GetPluginCapabilitiesRequest(),
                                 capabilities, stop));
  for (const auto& capability : capabilities.capabilities()) {
    using Service = v1::PluginCapability::Service;
    out.controller_service |= capability.service().type() == Service::CONTROLLER_SERVICE;
    out.topology |= capability.service().type() == Service::VOLUME_ACCESSIBILITY_CONSTRAINTS;
  }
  if (out.controller_service) {
    v1::ControllerGetCapabilitiesResponse calls;
    KEELSON_RETURN_IF_ERROR(Invoke(*stubs_->controller, &v1::Controller::Stub::ControllerGetCapabilities,
                                   "/csi.v1.Controller/ControllerGetCapabilities",
                                   v1::ControllerGetCapabilitiesRequest(), calls, stop));
    for (const auto& capability : calls.capabilities()) out.controller.insert(capability.rpc().type());
  }
  v1::NodeGetCapabilitiesResponse on_node;
  const Result<> asked =
      Invoke(*stubs_->node, &v1::Node::Stub::NodeGetCapabilities, "/csi.v1.Node/NodeGetCapabilities",
             v1::NodeGetCapabilitiesRequest(), on_node, stop);
  if (!asked && !asked.error().Is(Code::kUnimplemented)) return asked.error();
  for (const auto& capability : on_node.capabilities()) {
    out.node_expand |= capability.rpc().type() == v1::NodeServiceCapability::RPC::EXPAND_VOLUME;
  }
  if (options_.node) {
    v1::NodeGetInfoResponse node;
    KEELSON_RETURN_IF_ERROR(Invoke(*stubs_->node, &v1::Node::Stub::NodeGetInfo, "/csi.v1.Node/NodeGetInfo",
                                   v1::NodeGetInfoRequest(), node, stop));
    const auto& segments = node.accessible_topology().segments();
    out.node_topology = {segments.begin(), segments.end()};
  }
  return out;
}

Result<> Driver::Connect(std::stop_token stop) {
  std::string told;
  for (;;) {
    Result<> ready = Probe(stop);
    if (ready) {
      Result<DriverInfo> info = Ask(stop);
      if (info) {
        name_ = info->name;
        MutexLock lock(mutex_);
        info_ = std::make_shared<DriverInfo>(*std::move(info));
        return {};
      }
      if (info.error().Is(Code::kInvalid)) return info.error();
      ready = info.error();
    }
    if (stop.stop_requested()) return Error(Code::kCancelled, "stopped");
    if (ready.error().message() != told) {
      told = ready.error().message();
      log::Info("Waiting for the driver", {{"address", options_.address}, {"err", ready.error()}});
    }
    if (!client::SleepFor(Clock::Real(), kProbeEvery, stop)) return Error(Code::kCancelled, "stopped");
  }
}

Result<std::shared_ptr<const DriverInfo>> Driver::Info(std::stop_token stop) {
  {
    MutexLock lock(mutex_);
    if (info_) return info_;
  }
  KEELSON_ASSIGN_OR_RETURN(DriverInfo asked, Ask(stop));
  if (asked.name != name_) {
    return Error(Code::kInvalid,
                 "the driver at " + options_.address + " is now " + asked.name + ", it was " + name_);
  }
  auto info = std::make_shared<const DriverInfo>(std::move(asked));
  MutexLock lock(mutex_);
  info_ = info;
  return info;
}

Result<v1::CreateVolumeResponse> Driver::CreateVolume(const v1::CreateVolumeRequest& request,
                                                      std::stop_token stop) {
  v1::CreateVolumeResponse reply;
  KEELSON_RETURN_IF_ERROR(Invoke(*stubs_->controller, &v1::Controller::Stub::CreateVolume,
                                 "/csi.v1.Controller/CreateVolume", request, reply, stop));
  return reply;
}

Result<> Driver::DeleteVolume(const v1::DeleteVolumeRequest& request, std::stop_token stop) {
  v1::DeleteVolumeResponse reply;
  return Invoke(*stubs_->controller, &v1::Controller::Stub::DeleteVolume, "/csi.v1.Controller/DeleteVolume",
                request, reply, stop);
}

Result<v1::ControllerPublishVolumeResponse> Driver::Publish(const v1::ControllerPublishVolumeRequest& request,
                                                            std::stop_token stop) {
  v1::ControllerPublishVolumeResponse reply;
  KEELSON_RETURN_IF_ERROR(Invoke(*stubs_->controller, &v1::Controller::Stub::ControllerPublishVolume,
                                 "/csi.v1.Controller/ControllerPublishVolume", request, reply, stop));
  return reply;
}

Result<> Driver::Unpublish(const v1::ControllerUnpublishVolumeRequest& request, std::stop_token stop) {
  v1::ControllerUnpublishVolumeResponse reply;
  return Invoke(*stubs_->controller, &v1::Controller::Stub::ControllerUnpublishVolume,
                "/csi.v1.Controller/ControllerUnpublishVolume", request, reply, stop);
}

Result<v1::ControllerExpandVolumeResponse> Driver::Expand(const v1::ControllerExpandVolumeRequest& request,
                                                          std::stop_token stop) {
  v1::ControllerExpandVolumeResponse reply;
  KEELSON_RETURN_IF_ERROR(Invoke(*stubs_->controller, &v1::Controller::Stub::ControllerExpandVolume,
                                 "/csi.v1.Controller/ControllerExpandVolume", request, reply, stop));
  return reply;
}

Result<> Driver::Modify(const v1::ControllerModifyVolumeRequest& request, std::stop_token stop) {
  v1::ControllerModifyVolumeResponse reply;
  return Invoke(*stubs_->controller, &v1::Controller::Stub::ControllerModifyVolume,
                "/csi.v1.Controller/ControllerModifyVolume", request, reply, stop);
}

Result<v1::CreateSnapshotResponse> Driver::CreateSnapshot(const v1::CreateSnapshotRequest& request,
                                                          std::stop_token stop) {
  v1::CreateSnapshotResponse reply;
  KEELSON_RETURN_IF_ERROR(Invoke(*stubs_->controller, &v1::Controller::Stub::CreateSnapshot,
                                 "/csi.v1.Controller/CreateSnapshot", request, reply, stop));
  return reply;
}

Result<> Driver::DeleteSnapshot(const v1::DeleteSnapshotRequest& request, std::stop_token stop) {
  v1::DeleteSnapshotResponse reply;
  return Invoke(*stubs_->controller, &v1::Controller::Stub::DeleteSnapshot,
                "/csi.v1.Controller/DeleteSnapshot", request, reply, stop);
}

Result<v1::ListSnapshotsResponse> Driver::ListSnapshots(const v1::ListSnapshotsRequest& request,
                                                        std::stop_token stop) {
  v1::ListSnapshotsResponse reply;
  KEELSON_RETURN_IF_ERROR(Invoke(*stubs_->controller, &v1::Controller::Stub::ListSnapshots,
                                 "/csi.v1.Controller/ListSnapshots", request, reply, stop));
  return reply;
}

Result<v1::ListVolumesResponse> Driver::ListVolumes(const v1::ListVolumesRequest& request,
                                                    std::stop_token stop) {
  v1::ListVolumesResponse reply;
  KEELSON_RETURN_IF_ERROR(Invoke(*stubs_->controller, &v1::Controller::Stub::ListVolumes,
                                 "/csi.v1.Controller/ListVolumes", request, reply, stop));
  return reply;
}

Result<v1::ControllerGetVolumeResponse> Driver::GetVolume(const v1::ControllerGetVolumeRequest& request,
                                                          std::stop_token stop) {
  v1::ControllerGetVolumeResponse reply;
  KEELSON_RETURN_IF_ERROR(Invoke(*stubs_->controller, &v1::Controller::Stub::ControllerGetVolume,
                                 "/csi.v1.Controller/ControllerGetVolume", request, reply, stop));
  return reply;
}

Result<v1::GetCapacityResponse> Driver::GetCapacity(const v1::GetCapacityRequest& request,
                                                    std::stop_token stop) {
  v1::GetCapacityResponse reply;
  KEELSON_RETURN_IF_ERROR(Invoke(*stubs_->controller, &v1::Controller::Stub::GetCapacity,
                                 "/csi.v1.Controller/GetCapacity", request, reply, stop));
  return reply;
}

}  // namespace keelson::csi::controller
