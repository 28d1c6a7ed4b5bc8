#include "kubelet/probe/testing/grpc_health_server.h"

// Before gRPC's headers: both define thread-safety macros, and a system header may do so again.
#include "lib/base/mutex.h"

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>

namespace keelson::kubelet {

struct GrpcHealthServer::Impl {
  int port = 0;
  grpc::CallbackGenericService nothing;  // a server without a service does not start
  std::unique_ptr<grpc::Server> server;
};

GrpcHealthServer::GrpcHealthServer(const std::string& ip) : impl_(std::make_unique<Impl>()) {
  grpc::EnableDefaultHealthCheckService(true);
  grpc::ServerBuilder builder;
  builder.AddListeningPort(ip + ":0", grpc::InsecureServerCredentials(), &impl_->port);
  builder.RegisterCallbackGenericService(&impl_->nothing);
  impl_->server = builder.BuildAndStart();
}

GrpcHealthServer::~GrpcHealthServer() = default;

int GrpcHealthServer::port() const { return impl_->port; }

void GrpcHealthServer::Set(const std::string& service, bool serving) {
  impl_->server->GetHealthCheckService()->SetServingStatus(service, serving);
}

void GrpcHealthServer::SetAll(bool serving) {
  impl_->server->GetHealthCheckService()->SetServingStatus(serving);
}

}  // namespace keelson::kubelet
