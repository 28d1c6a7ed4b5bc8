#include "kubelet/probe/grpc_probe.h"

#include <gtest/gtest.h>

#include "kubelet/probe/testing/grpc_health_server.h"

namespace keelson::kubelet {
namespace {

using std::chrono::seconds;

TEST(GrpcProbe, FollowsWhatTheServerSaysOfEachService) {
  GrpcHealthServer server;
  server.Set("up", true);
  server.Set("down", false);
  const std::string at = server.address();
  EXPECT_EQ(CheckGrpcHealth(at, "", seconds(10), {}).kind, ProbeOutcome::kSuccess);
  EXPECT_EQ(CheckGrpcHealth(at, "up", seconds(10), {}).kind, ProbeOutcome::kSuccess);
  const ProbeOutcome down = CheckGrpcHealth(at, "down", seconds(10), {});
  EXPECT_EQ(down.kind, ProbeOutcome::kFailure);
  EXPECT_EQ(down.output, "service unhealthy (responded with \"NOT_SERVING\")");
  const ProbeOutcome unknown = CheckGrpcHealth(at, "absent", seconds(10), {});
  EXPECT_EQ(unknown.kind, ProbeOutcome::kFailure);
  EXPECT_EQ(unknown.output.rfind("error: health rpc probe failed: ", 0), 0u) << unknown.output;
  server.SetAll(false);
  EXPECT_EQ(CheckGrpcHealth(at, "", seconds(10), {}).kind, ProbeOutcome::kFailure);
}

TEST(GrpcProbe, NobodyThere) {
  const std::string at = GrpcHealthServer().address();
  const ProbeOutcome nobody = CheckGrpcHealth(at, "", seconds(5), {});
  EXPECT_EQ(nobody.kind, ProbeOutcome::kFailure);
  std::stop_source stopped;
  stopped.request_stop();
  EXPECT_NE(CheckGrpcHealth(at, "", seconds(60), stopped.get_token()).kind, ProbeOutcome::kSuccess);
}

}  // namespace
}  // namespace keelson::kubelet
