// The driver makes itself known to the kubelet, which finds the socket in its directory plugins_registry: no
// node-driver-registrar is needed where driver and kubelet see the same paths.
#pragma once

#include "csi/local/model/config.h"
#include "lib/rpc/proto/pluginregistration.grpc.pb.h"

namespace keelson::csi::local {

class RegistrationService : public pluginregistration::Registration::Service {
 public:
  // `socket`: where the driver serves CSI.
  RegistrationService(const Config& config, std::string socket)
      : config_(config), socket_(std::move(socket)) {}
  grpc::Status GetInfo(grpc::ServerContext* call, const pluginregistration::InfoRequest* request,
                       pluginregistration::PluginInfo* reply) override;
  grpc::Status NotifyRegistrationStatus(grpc::ServerContext* call,
                                        const pluginregistration::RegistrationStatus* request,
                                        pluginregistration::RegistrationStatusResponse* reply) override;

 private:
  const Config& config_;
  const std::string socket_;
};

}  // namespace keelson::csi::local
