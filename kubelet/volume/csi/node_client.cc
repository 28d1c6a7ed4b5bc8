#include "kubelet/volume/csi/node_client.h"

#include <chrono>

#include "kubelet/metrics/stopwatch.h"
#include "lib/metrics/metrics.h"
// Before gRPC's headers: both define thread-safety macros, and a system header may do so again.
#include "lib/rpc/channel.h"

#include <grpcpp/grpcpp.h>

#include "lib/rpc/proto/csi.grpc.pb.h"

namespace keelson::kubelet::csi {

namespace {

namespace wire = ::csi::v1;

constexpr std::chrono::minutes kTimeout{2};

void Count(const std::string& driver, const char* method, const grpc::Status& status, double seconds) {
  static metrics::Family& operations =
      metrics::Histograms("csi_operations_seconds",
                          "Container Storage Interface operation duration with gRPC error code status total",
                          {.1, .25, .5, 1, 2.5, 5, 10, 15, 25, 50, 120, 300, 600},
                          {"driver_name", "method_name", "grpc_status_code", "migrated"});
  operations.HistogramWith({driver, std::string("/csi.v1.Node/") + method, rpc::CodeName(status), "false"})
      .Observe(seconds);
}

Error ErrorOf(const grpc::Status& status, const std::stop_token& stop) {
  Error error = rpc::GoError(status);
  if (stop.stop_requested()) return Error(Code::kCancelled, error.message());
  switch (status.error_code()) {
    case grpc::StatusCode::INVALID_ARGUMENT:
      return Error(Code::kBadRequest, error.message());
    case grpc::StatusCode::ABORTED:    // an operation is pending; kConflict is the API server's
    case grpc::StatusCode::CANCELLED:  // by the driver
      return Error(Code::kUnavailable, error.message());
    case grpc::StatusCode::FAILED_PRECONDITION:  // final, unlike ABORTED, with which rpc puts it together
      return Error(Code::kInvalid, error.message());
    default:
      return error;
  }
}

Result<> Missing(const char* what) { return Error(Code::kInvalid, std::string("missing ") + what); }

void Set(const Values& from, google::protobuf::Map<std::string, std::string>& to) {
  for (const auto& [key, value] : from) to[key] = value;
}

void Set(const VolumeCapability& from, wire::VolumeCapability& to) {
  to.mutable_access_mode()->set_mode(
      static_cast<wire::VolumeCapability::AccessMode::Mode>(static_cast<int>(from.access_mode)));
  if (from.block) {
    to.mutable_block();
    return;
  }
  auto& mount = *to.mutable_mount();
  mount.set_fs_type(from.fs_type);
  for (const std::string& flag : from.mount_flags) mount.add_mount_flags(flag);
  if (from.group) mount.set_volume_mount_group(std::to_string(*from.group));
}

uint64_t NotNegative(int64_t amount) { return amount < 0 ? 0 : static_cast<uint64_t>(amount); }

VolumeStats FromWire(const wire::NodeGetVolumeStatsResponse& reply) {
  VolumeStats out;
  for (const wire::VolumeUsage& item : reply.usage()) {
    const Usage usage{NotNegative(item.total()), NotNegative(item.available()), NotNegative(item.used())};
    if (item.unit() == wire::VolumeUsage::BYTES) out.bytes = usage;
    if (item.unit() == wire::VolumeUsage::INODES) out.inodes = usage;
  }
  if (reply.has_volume_condition()) {
    out.condition = {reply.volume_condition().abnormal(), reply.volume_condition().message()};
  }
  return out;
}

NodeCapabilities FromWire(const wire::NodeGetCapabilitiesResponse& reply) {
  using Rpc = wire::NodeServiceCapability::RPC;
  NodeCapabilities out;
  for (const wire::NodeServiceCapability& item : reply.capabilities()) {
    const auto type = item.rpc().type();
    out.stage |= type == Rpc::STAGE_UNSTAGE_VOLUME;
    out.stats |= type == Rpc::GET_VOLUME_STATS;
    out.expand |= type == Rpc::EXPAND_VOLUME;
    out.condition |= type == Rpc::VOLUME_CONDITION;
    out.multi_writer |= type == Rpc::SINGLE_NODE_MULTI_WRITER;
    out.mount_group |= type == Rpc::VOLUME_MOUNT_GROUP;
  }
  return out;
}

class GrpcNodeClient : public NodeClient {
 public:
  GrpcNodeClient(std::string driver, const std::string& socket)
      : driver_(std::move(driver)), stub_(wire::Node::NewStub(rpc::UnixChannel(socket))) {}

  Result<NodeInfo> GetInfo(std::stop_token stop) override {
    wire::NodeGetInfoResponse reply;
    KEELSON_RETURN_IF_ERROR(
        Invoke(&Stub::NodeGetInfo, "NodeGetInfo", wire::NodeGetInfoRequest(), reply, stop));
    const auto& segments = reply.accessible_topology().segments();
    return NodeInfo{reply.node_id(), reply.max_volumes_per_node(), {segments.begin(), segments.end()}};
  }

  Result<NodeCapabilities> GetCapabilities(std::stop_token stop) override {
    wire::NodeGetCapabilitiesResponse reply;
    KEELSON_RETURN_IF_ERROR(Invoke(&Stub::NodeGetCapabilities, "NodeGetCapabilities",
                                   wire::NodeGetCapabilitiesRequest(), reply, stop));
    return FromWire(reply);
  }

  Result<> Stage(const StageRequest& request, std::stop_token stop) override {
    if (request.volume_id.empty()) return Missing("volume id");
    if (request.staging_path.empty()) return Missing("staging target path");
    wire::NodeStageVolumeRequest out;
    wire::NodeStageVolumeResponse reply;
    out.set_volume_id(request.volume_id);
    out.set_staging_target_path(request.staging_path);
    Set(request.publish_context, *out.mutable_publish_context());
    Set(request.volume_context, *out.mutable_volume_context());
    Set(request.secrets, *out.mutable_secrets());
    Set(request.capability, *out.mutable_volume_capability());
    return Invoke(&Stub::NodeStageVolume, "NodeStageVolume", out, reply, stop);
  }

  Result<> Unstage(const std::string& volume_id, const std::string& staging_path,
                   std::stop_token stop) override {
    if (volume_id.empty()) return Missing("volume id");
    if (staging_path.empty()) return Missing("staging target path");
    wire::NodeUnstageVolumeRequest out;
    wire::NodeUnstageVolumeResponse reply;
    out.set_volume_id(volume_id);
    out.set_staging_target_path(staging_path);
    return Invoke(&Stub::NodeUnstageVolume, "NodeUnstageVolume", out, reply, stop);
  }

  Result<> Publish(const PublishRequest& request, std::stop_token stop) override {
    if (request.volume_id.empty()) return Missing("volume id");
    if (request.target_path.empty()) return Missing("target path");
    wire::NodePublishVolumeRequest out;
    wire::NodePublishVolumeResponse reply;
    out.set_volume_id(request.volume_id);
    out.set_target_path(request.target_path);
    out.set_staging_target_path(request.staging_path);
    out.set_readonly(request.read_only);
    Set(request.publish_context, *out.mutable_publish_context());
    Set(request.volume_context, *out.mutable_volume_context());
    Set(request.secrets, *out.mutable_secrets());
    Set(request.capability, *out.mutable_volume_capability());
    return Invoke(&Stub::NodePublishVolume, "NodePublishVolume", out, reply, stop);
  }

  Result<> Unpublish(const std::string& volume_id, const std::string& target_path,
                     std::stop_token stop) override {
    if (volume_id.empty()) return Missing("volume id");
    if (target_path.empty()) return Missing("target path");
    wire::NodeUnpublishVolumeRequest out;
    wire::NodeUnpublishVolumeResponse reply;
    out.set_volume_id(volume_id);
    out.set_target_path(target_path);
    return Invoke(&Stub::NodeUnpublishVolume, "NodeUnpublishVolume", out, reply, stop);
  }

  Result<> Expand(const ExpandRequest& request, std::stop_token stop) override {
    if (request.volume_id.empty()) return Missing("volume id");
    if (request.volume_path.empty()) return Missing("volume path");
    wire::NodeExpandVolumeRequest out;
    wire::NodeExpandVolumeResponse reply;
    out.set_volume_id(request.volume_id);
    out.set_volume_path(request.volume_path);
    out.set_staging_target_path(request.staging_path);
    out.mutable_capacity_range()->set_required_bytes(request.bytes);
    Set(request.secrets, *out.mutable_secrets());
    Set(request.capability, *out.mutable_volume_capability());
    return Invoke(&Stub::NodeExpandVolume, "NodeExpandVolume", out, reply, stop);
  }

  Result<VolumeStats> GetStats(const std::string& volume_id, const std::string& volume_path,
                               std::stop_token stop) override {
    wire::NodeGetVolumeStatsRequest out;
    wire::NodeGetVolumeStatsResponse reply;
    out.set_volume_id(volume_id);
    out.set_volume_path(volume_path);
    KEELSON_RETURN_IF_ERROR(Invoke(&Stub::NodeGetVolumeStats, "NodeGetVolumeStats", out, reply, stop));
    return FromWire(reply);
  }

 private:
  using Stub = wire::Node::Stub;

  template <typename Method, typename Request, typename Reply>
  Result<> Invoke(Method method, const char* name, const Request& request, Reply& reply,
                  const std::stop_token& stop) {
    Stopwatch watch;
    rpc::Call call(kTimeout, stop);
    const grpc::Status status = ((*stub_).*method)(call.context(), request, &reply);
    Count(driver_, name, status, watch.Seconds());
    if (status.ok()) return {};
    return ErrorOf(status, stop);
  }

  const std::string driver_;
  const std::unique_ptr<Stub> stub_;
};

}  // namespace

bool IsFinal(const Error& error) {
  switch (error.code()) {
    case Code::kTimeout:
    case Code::kUnavailable:
    case Code::kTooManyRequests:
    case Code::kConflict:
    case Code::kCancelled:
      return false;
    default:
      return true;
  }
}

std::shared_ptr<NodeClient> NewNodeClient(const std::string& driver, const std::string& socket) {
  return std::make_shared<GrpcNodeClient>(driver, socket);
}

}  // namespace keelson::kubelet::csi
