#include "kubelet/probe/grpc_probe.h"

// Before gRPC's headers: both define thread-safety macros, and a system header may do so again.
#include "lib/base/mutex.h"

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>
#include <gtest/gtest.h>

namespace keelson::kubelet {
namespace {

using std::chrono::seconds;

// With gRPC's own health service, and nothing else.
class Server {
 public:
  Server() {
    grpc::EnableDefaultHealthCheckService(true);
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterCallbackGenericService(&nothing_);  // there has to be one
    server_ = builder.BuildAndStart();
  }
  grpc::HealthCheckServiceInterface& health() { return *server_->GetHealthCheckService(); }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

 private:
  int port_ = 0;
  grpc::CallbackGenericService nothing_;
  std::unique_ptr<grpc::Server> server_;
};

TEST(GrpcProbe, FollowsWhatTheServerSaysOfEachService) {
  Server server;
  server.health().SetServingStatus("up", true);
  server.health().SetServingStatus("down", false);
  const std::string at = server.address();
  EXPECT_EQ(CheckGrpcHealth(at, "", seconds(10), {}).kind, ProbeOutcome::kSuccess);
  EXPECT_EQ(CheckGrpcHealth(at, "up", seconds(10), {}).kind, ProbeOutcome::kSuccess);
  const ProbeOutcome down = CheckGrpcHealth(at, "down", seconds(10), {});
  EXPECT_EQ(down.kind, ProbeOutcome::kFailure);
  EXPECT_EQ(down.output, "service unhealthy (responded with \"NOT_SERVING\")");
  const ProbeOutcome unknown = CheckGrpcHealth(at, "absent", seconds(10), {});
  EXPECT_EQ(unknown.kind, ProbeOutcome::kFailure);
  EXPECT_EQ(unknown.output.rfind("error: health rpc probe failed: ", 0), 0u) << unknown.output;
  server.health().SetServingStatus(false);
  EXPECT_EQ(CheckGrpcHealth(at, "", seconds(10), {}).kind, ProbeOutcome::kFailure);
}

TEST(GrpcProbe, NobodyThere) {
  const std::string at = Server().address();
  const ProbeOutcome nobody = CheckGrpcHealth(at, "", seconds(5), {});
  EXPECT_EQ(nobody.kind, ProbeOutcome::kFailure);
  std::stop_source stopped;
  stopped.request_stop();
  EXPECT_NE(CheckGrpcHealth(at, "", seconds(60), stopped.get_token()).kind, ProbeOutcome::kSuccess);
}

}  // namespace
}  // namespace keelson::kubelet
