#include "csi/local/serving/services.h"
#include "csi/local/serving/status.h"

namespace keelson::csi::local {

grpc::Status GroupControllerService::GroupControllerGetCapabilities(
    grpc::ServerContext*, const v1::GroupControllerGetCapabilitiesRequest*,
    v1::GroupControllerGetCapabilitiesResponse* reply) {
  reply->add_capabilities()->mutable_rpc()->set_type(
      v1::GroupControllerServiceCapability::RPC::CREATE_DELETE_GET_VOLUME_GROUP_SNAPSHOT);
  return grpc::Status::OK;
}

grpc::Status GroupControllerService::CreateVolumeGroupSnapshot(
    grpc::ServerContext*, const v1::CreateVolumeGroupSnapshotRequest* request,
    v1::CreateVolumeGroupSnapshotResponse* reply) {
  return ToStatus(snapshots_.CreateGroup(*request, *reply), "CreateVolumeGroupSnapshot", request->name());
}

grpc::Status GroupControllerService::DeleteVolumeGroupSnapshot(
    grpc::ServerContext*, const v1::DeleteVolumeGroupSnapshotRequest* request,
    v1::DeleteVolumeGroupSnapshotResponse*) {
  return ToStatus(snapshots_.DeleteGroup(*request), "DeleteVolumeGroupSnapshot",
                  request->group_snapshot_id());
}

grpc::Status GroupControllerService::GetVolumeGroupSnapshot(grpc::ServerContext*,
                                                            const v1::GetVolumeGroupSnapshotRequest* request,
                                                            v1::GetVolumeGroupSnapshotResponse* reply) {
  return ToStatus(snapshots_.GetGroup(*request, *reply), "GetVolumeGroupSnapshot",
                  request->group_snapshot_id());
}

}  // namespace keelson::csi::local
