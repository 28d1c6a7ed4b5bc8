#include "csi/local/host/filesystem.h"
#include "csi/local/serving/services.h"
#include "csi/local/serving/status.h"
#include "lib/base/version.h"

namespace keelson::csi::local {

grpc::Status IdentityService::GetPluginInfo(grpc::ServerContext*, const v1::GetPluginInfoRequest*,
                                            v1::GetPluginInfoResponse* reply) {
  reply->set_name(context_.config.driver_name);
  reply->set_vendor_version(kGitVersion);
  return grpc::Status::OK;
}

grpc::Status IdentityService::GetPluginCapabilities(grpc::ServerContext*,
                                                    const v1::GetPluginCapabilitiesRequest*,
                                                    v1::GetPluginCapabilitiesResponse* reply) {
  using Service = v1::PluginCapability::Service;
  for (auto type : {Service::CONTROLLER_SERVICE, Service::VOLUME_ACCESSIBILITY_CONSTRAINTS,
                    Service::GROUP_CONTROLLER_SERVICE}) {
    reply->add_capabilities()->mutable_service()->set_type(type);
  }
  reply->add_capabilities()->mutable_volume_expansion()->set_type(
      v1::PluginCapability::VolumeExpansion::ONLINE);
  return grpc::Status::OK;
}

grpc::Status IdentityService::Probe(grpc::ServerContext*, const v1::ProbeRequest*, v1::ProbeResponse* reply) {
  auto usage = UsageOf(context_.store.directory());
  if (!usage) return {grpc::StatusCode::FAILED_PRECONDITION, usage.error().message()};
  reply->mutable_ready()->set_value(true);
  return grpc::Status::OK;
}

}  // namespace keelson::csi::local
