#include "kubelet/cm/devices/registration.h"

#include "lib/rpc/server.h"

#include <grpcpp/grpcpp.h>

#include "lib/rpc/proto/deviceplugin.grpc.pb.h"

namespace keelson::kubelet::devices {
namespace {

class Service : public v1beta1::Registration::Service {
 public:
  explicit Service(RegistrationServer::Accept accept) : accept_(std::move(accept)) {}

  grpc::Status Register(grpc::ServerContext*, const v1beta1::RegisterRequest* request,
                        v1beta1::Empty*) override {
    Result<> done = accept_({request->version(), request->resource_name(), request->endpoint()});
    return done ? grpc::Status::OK : grpc::Status(grpc::StatusCode::UNKNOWN, done.error().message());
  }

 private:
  const RegistrationServer::Accept accept_;
};

}  // namespace

struct RegistrationServer::Impl {
  explicit Impl(Accept accept) : service(std::move(accept)) {}

  Service service;
  std::unique_ptr<rpc::UnixServer> server;
};

Result<std::unique_ptr<RegistrationServer>> RegistrationServer::Start(const std::string& dir, Accept accept) {
  auto impl = std::make_unique<Impl>(std::move(accept));
  KEELSON_ASSIGN_OR_RETURN(impl->server,
                           rpc::UnixServer::Start(dir + "/" + kRegistrationSocket, {&impl->service}));
  return std::unique_ptr<RegistrationServer>(new RegistrationServer(std::move(impl)));
}

RegistrationServer::RegistrationServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
RegistrationServer::~RegistrationServer() = default;

}  // namespace keelson::kubelet::devices
