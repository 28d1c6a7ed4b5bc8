#include "csi/local/serving/services.h"
#include "csi/local/serving/status.h"

namespace keelson::csi::local {

grpc::Status ControllerService::ControllerGetCapabilities(grpc::ServerContext*,
                                                          const v1::ControllerGetCapabilitiesRequest*,
                                                          v1::ControllerGetCapabilitiesResponse* reply) {
  using RPC = v1::ControllerServiceCapability::RPC;
  // GetSnapshot answers too. GET_SNAPSHOT is not in the list: csi-sanity 5.4 takes what it does not know for an error.
  for (auto type : {RPC::CREATE_DELETE_VOLUME, RPC::LIST_VOLUMES, RPC::GET_CAPACITY,
                    RPC::CREATE_DELETE_SNAPSHOT, RPC::LIST_SNAPSHOTS, RPC::CLONE_VOLUME,
                    RPC::VOLUME_CONDITION, RPC::GET_VOLUME, RPC::SINGLE_NODE_MULTI_WRITER}) {
    reply->add_capabilities()->mutable_rpc()->set_type(type);
  }
  if (config_.controller_expansion) reply->add_capabilities()->mutable_rpc()->set_type(RPC::EXPAND_VOLUME);
  return grpc::Status::OK;
}

grpc::Status ControllerService::GetCapacity(grpc::ServerContext*, const v1::GetCapacityRequest* request,
                                            v1::GetCapacityResponse* reply) {
  return ToStatus(volumes_.Capacity(*request, *reply), "GetCapacity", "");
}

grpc::Status ControllerService::CreateVolume(grpc::ServerContext*, const v1::CreateVolumeRequest* request,
                                             v1::CreateVolumeResponse* reply) {
  return ToStatus(volumes_.Create(*request, *reply), "CreateVolume", request->name());
}

grpc::Status ControllerService::DeleteVolume(grpc::ServerContext*, const v1::DeleteVolumeRequest* request,
                                             v1::DeleteVolumeResponse*) {
  return ToStatus(volumes_.Delete(*request), "DeleteVolume", request->volume_id());
}

grpc::Status ControllerService::ValidateVolumeCapabilities(
    grpc::ServerContext*, const v1::ValidateVolumeCapabilitiesRequest* request,
    v1::ValidateVolumeCapabilitiesResponse* reply) {
  return ToStatus(volumes_.ValidateCapabilities(*request, *reply), "ValidateVolumeCapabilities",
                  request->volume_id());
}

grpc::Status ControllerService::ListVolumes(grpc::ServerContext*, const v1::ListVolumesRequest* request,
                                            v1::ListVolumesResponse* reply) {
  return ToStatus(volumes_.List(*request, *reply), "ListVolumes", request->starting_token());
}

grpc::Status ControllerService::CreateSnapshot(grpc::ServerContext*, const v1::CreateSnapshotRequest* request,
                                               v1::CreateSnapshotResponse* reply) {
  return ToStatus(snapshots_.Create(*request, *reply), "CreateSnapshot", request->name());
}

grpc::Status ControllerService::DeleteSnapshot(grpc::ServerContext*, const v1::DeleteSnapshotRequest* request,
                                               v1::DeleteSnapshotResponse*) {
  return ToStatus(snapshots_.Delete(*request), "DeleteSnapshot", request->snapshot_id());
}

grpc::Status ControllerService::ListSnapshots(grpc::ServerContext*, const v1::ListSnapshotsRequest* request,
                                              v1::ListSnapshotsResponse* reply) {
  return ToStatus(snapshots_.List(*request, *reply), "ListSnapshots", request->starting_token());
}

grpc::Status ControllerService::GetSnapshot(grpc::ServerContext*, const v1::GetSnapshotRequest* request,
                                            v1::GetSnapshotResponse* reply) {
  return ToStatus(snapshots_.Get(*request, *reply), "GetSnapshot", request->snapshot_id());
}

grpc::Status ControllerService::ControllerExpandVolume(grpc::ServerContext*,
                                                       const v1::ControllerExpandVolumeRequest* request,
                                                       v1::ControllerExpandVolumeResponse* reply) {
  return ToStatus(volumes_.Expand(*request, *reply), "ControllerExpandVolume", request->volume_id());
}

grpc::Status ControllerService::ControllerGetVolume(grpc::ServerContext*,
                                                    const v1::ControllerGetVolumeRequest* request,
                                                    v1::ControllerGetVolumeResponse* reply) {
  return ToStatus(volumes_.Get(*request, *reply), "ControllerGetVolume", request->volume_id());
}

}  // namespace keelson::csi::local
