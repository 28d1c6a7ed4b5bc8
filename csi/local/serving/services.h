// The four gRPC services. They only turn calls into those of volumes/, and results into statuses.
#pragma once

#include "csi/local/model/config.h"
#include "csi/local/model/wire.h"
#include "csi/local/volumes/node_calls.h"
#include "csi/local/volumes/snapshot_calls.h"
#include "csi/local/volumes/volume_calls.h"
#include "lib/rpc/proto/csi.grpc.pb.h"

namespace keelson::csi::local {

class IdentityService : public v1::Identity::Service {
 public:
  explicit IdentityService(const Context& context) : context_(context) {}
  grpc::Status GetPluginInfo(grpc::ServerContext* call, const v1::GetPluginInfoRequest* request,
                             v1::GetPluginInfoResponse* reply) override;
  grpc::Status GetPluginCapabilities(grpc::ServerContext* call,
                                     const v1::GetPluginCapabilitiesRequest* request,
                                     v1::GetPluginCapabilitiesResponse* reply) override;
  // FAILED_PRECONDITION: the data directory cannot be read.
  grpc::Status Probe(grpc::ServerContext* call, const v1::ProbeRequest* request,
                     v1::ProbeResponse* reply) override;

 private:
  const Context& context_;
};

// ControllerPublishVolume, ControllerUnpublishVolume and ControllerModifyVolume stay UNIMPLEMENTED.
class ControllerService : public v1::Controller::Service {
 public:
  ControllerService(const Config& config, VolumeCalls& volumes, SnapshotCalls& snapshots)
      : config_(config), volumes_(volumes), snapshots_(snapshots) {}
  grpc::Status CreateVolume(grpc::ServerContext* call, const v1::CreateVolumeRequest* request,
                            v1::CreateVolumeResponse* reply) override;
  grpc::Status DeleteVolume(grpc::ServerContext* call, const v1::DeleteVolumeRequest* request,
                            v1::DeleteVolumeResponse* reply) override;
  grpc::Status ValidateVolumeCapabilities(grpc::ServerContext* call,
                                          const v1::ValidateVolumeCapabilitiesRequest* request,
                                          v1::ValidateVolumeCapabilitiesResponse* reply) override;
  grpc::Status ListVolumes(grpc::ServerContext* call, const v1::ListVolumesRequest* request,
                           v1::ListVolumesResponse* reply) override;
  grpc::Status GetCapacity(grpc::ServerContext* call, const v1::GetCapacityRequest* request,
                           v1::GetCapacityResponse* reply) override;
  grpc::Status ControllerGetCapabilities(grpc::ServerContext* call,
                                         const v1::ControllerGetCapabilitiesRequest* request,
                                         v1::ControllerGetCapabilitiesResponse* reply) override;
  grpc::Status CreateSnapshot(grpc::ServerContext* call, const v1::CreateSnapshotRequest* request,
                              v1::CreateSnapshotResponse* reply) override;
  grpc::Status DeleteSnapshot(grpc::ServerContext* call, const v1::DeleteSnapshotRequest* request,
                              v1::DeleteSnapshotResponse* reply) override;
  grpc::Status ListSnapshots(grpc::ServerContext* call, const v1::ListSnapshotsRequest* request,
                             v1::ListSnapshotsResponse* reply) override;
  grpc::Status GetSnapshot(grpc::ServerContext* call, const v1::GetSnapshotRequest* request,
                           v1::GetSnapshotResponse* reply) override;
  grpc::Status ControllerExpandVolume(grpc::ServerContext* call,
                                      const v1::ControllerExpandVolumeRequest* request,
                                      v1::ControllerExpandVolumeResponse* reply) override;
  grpc::Status ControllerGetVolume(grpc::ServerContext* call, const v1::ControllerGetVolumeRequest* request,
                                   v1::ControllerGetVolumeResponse* reply) override;

 private:
  const Config& config_;
  VolumeCalls& volumes_;
  SnapshotCalls& snapshots_;
};

class GroupControllerService : public v1::GroupController::Service {
 public:
  explicit GroupControllerService(SnapshotCalls& snapshots) : snapshots_(snapshots) {}
  grpc::Status GroupControllerGetCapabilities(grpc::ServerContext* call,
                                              const v1::GroupControllerGetCapabilitiesRequest* request,
                                              v1::GroupControllerGetCapabilitiesResponse* reply) override;
  grpc::Status CreateVolumeGroupSnapshot(grpc::ServerContext* call,
                                         const v1::CreateVolumeGroupSnapshotRequest* request,
                                         v1::CreateVolumeGroupSnapshotResponse* reply) override;
  grpc::Status DeleteVolumeGroupSnapshot(grpc::ServerContext* call,
                                         const v1::DeleteVolumeGroupSnapshotRequest* request,
                                         v1::DeleteVolumeGroupSnapshotResponse* reply) override;
  grpc::Status GetVolumeGroupSnapshot(grpc::ServerContext* call,
                                      const v1::GetVolumeGroupSnapshotRequest* request,
                                      v1::GetVolumeGroupSnapshotResponse* reply) override;

 private:
  SnapshotCalls& snapshots_;
};

class NodeService : public v1::Node::Service {
 public:
  NodeService(const Config& config, NodeCalls& calls) : config_(config), calls_(calls) {}
  grpc::Status NodeStageVolume(grpc::ServerContext* call, const v1::NodeStageVolumeRequest* request,
                               v1::NodeStageVolumeResponse* reply) override;
  grpc::Status NodeUnstageVolume(grpc::ServerContext* call, const v1::NodeUnstageVolumeRequest* request,
                                 v1::NodeUnstageVolumeResponse* reply) override;
  grpc::Status NodePublishVolume(grpc::ServerContext* call, const v1::NodePublishVolumeRequest* request,
                                 v1::NodePublishVolumeResponse* reply) override;
  grpc::Status NodeUnpublishVolume(grpc::ServerContext* call, const v1::NodeUnpublishVolumeRequest* request,
                                   v1::NodeUnpublishVolumeResponse* reply) override;
  grpc::Status NodeGetVolumeStats(grpc::ServerContext* call, const v1::NodeGetVolumeStatsRequest* request,
                                  v1::NodeGetVolumeStatsResponse* reply) override;
  grpc::Status NodeExpandVolume(grpc::ServerContext* call, const v1::NodeExpandVolumeRequest* request,
                                v1::NodeExpandVolumeResponse* reply) override;
  grpc::Status NodeGetCapabilities(grpc::ServerContext* call, const v1::NodeGetCapabilitiesRequest* request,
                                   v1::NodeGetCapabilitiesResponse* reply) override;
  grpc::Status NodeGetInfo(grpc::ServerContext* call, const v1::NodeGetInfoRequest* request,
                           v1::NodeGetInfoResponse* reply) override;

 private:
  const Config& config_;
  NodeCalls& calls_;
};

}  // namespace keelson::csi::local
