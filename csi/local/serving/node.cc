#include "csi/local/serving/services.h"
#include "csi/local/serving/status.h"

namespace keelson::csi::local {

grpc::Status NodeService::NodeGetCapabilities(grpc::ServerContext*, const v1::NodeGetCapabilitiesRequest*,
                                              v1::NodeGetCapabilitiesResponse* reply) {
  using RPC = v1::NodeServiceCapability::RPC;
  for (auto type : {RPC::STAGE_UNSTAGE_VOLUME, RPC::GET_VOLUME_STATS, RPC::EXPAND_VOLUME,
                    RPC::VOLUME_CONDITION, RPC::SINGLE_NODE_MULTI_WRITER}) {
    reply->add_capabilities()->mutable_rpc()->set_type(type);
  }
  return grpc::Status::OK;
}

grpc::Status NodeService::NodeGetInfo(grpc::ServerContext*, const v1::NodeGetInfoRequest*,
                                      v1::NodeGetInfoResponse* reply) {
  reply->set_node_id(config_.node_id);
  reply->set_max_volumes_per_node(config_.max_volumes_per_node);
  (*reply->mutable_accessible_topology()->mutable_segments())[config_.TopologyKey()] = config_.node_id;
  return grpc::Status::OK;
}

grpc::Status NodeService::NodeStageVolume(grpc::ServerContext*, const v1::NodeStageVolumeRequest* request,
                                          v1::NodeStageVolumeResponse*) {
  return ToStatus(calls_.Stage(*request), "NodeStageVolume", request->volume_id());
}

grpc::Status NodeService::NodeUnstageVolume(grpc::ServerContext*, const v1::NodeUnstageVolumeRequest* request,
                                            v1::NodeUnstageVolumeResponse*) {
  return ToStatus(calls_.Unstage(*request), "NodeUnstageVolume", request->volume_id());
}

grpc::Status NodeService::NodePublishVolume(grpc::ServerContext*, const v1::NodePublishVolumeRequest* request,
                                            v1::NodePublishVolumeResponse*) {
  return ToStatus(calls_.Publish(*request), "NodePublishVolume", request->volume_id());
}

grpc::Status NodeService::NodeUnpublishVolume(grpc::ServerContext*,
                                              const v1::NodeUnpublishVolumeRequest* request,
                                              v1::NodeUnpublishVolumeResponse*) {
  return ToStatus(calls_.Unpublish(*request), "NodeUnpublishVolume", request->volume_id());
}

grpc::Status NodeService::NodeGetVolumeStats(grpc::ServerContext*,
                                             const v1::NodeGetVolumeStatsRequest* request,
                                             v1::NodeGetVolumeStatsResponse* reply) {
  return ToStatus(calls_.Stats(*request, *reply), "NodeGetVolumeStats", request->volume_id());
}

grpc::Status NodeService::NodeExpandVolume(grpc::ServerContext*, const v1::NodeExpandVolumeRequest* request,
                                           v1::NodeExpandVolumeResponse* reply) {
  return ToStatus(calls_.Expand(*request, *reply), "NodeExpandVolume", request->volume_id());
}

}  // namespace keelson::csi::local
