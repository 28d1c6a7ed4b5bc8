#include "csi/local/serving/registration.h"

#include "lib/base/log.h"

namespace keelson::csi::local {

grpc::Status RegistrationService::GetInfo(grpc::ServerContext*, const pluginregistration::InfoRequest*,
                                          pluginregistration::PluginInfo* reply) {
  reply->set_type("CSIPlugin");
  reply->set_name(config_.driver_name);
  reply->set_endpoint(socket_);
  reply->add_supported_versions("1.0.0");
  return grpc::Status::OK;
}

grpc::Status RegistrationService::NotifyRegistrationStatus(
    grpc::ServerContext*, const pluginregistration::RegistrationStatus* request,
    pluginregistration::RegistrationStatusResponse*) {
  if (request->plugin_registered()) {
    log::Info("Registered with the kubelet", {{"driver", config_.driver_name}});
  } else {
    log::Error("The kubelet refuses the driver",
               {{"driver", config_.driver_name}, {"err", request->error()}});
  }
  return grpc::Status::OK;
}

}  // namespace keelson::csi::local
