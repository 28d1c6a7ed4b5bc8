#include "kubelet/cri/convert.h"

#include <gtest/gtest.h>

namespace keelson::kubelet::cri {
namespace {

// What CRI-O answers otherwise than containerd.
TEST(ConvertTest, ContainersOfCrio) {
  constexpr int64_t kNever = -6795364578871345152;  // Go's zero time
  runtime::v1::ContainerStatus wire;
  wire.set_id("c1");
  wire.set_state(runtime::v1::CONTAINER_EXITED);
  wire.set_created_at(5);
  wire.set_started_at(kNever);
  wire.set_finished_at(kNever);
  wire.set_exit_code(-1);
  wire.mutable_image()->set_image("0123");
  wire.mutable_image()->set_user_specified_image("busybox:1");
  wire.set_image_ref("docker.io/library/busybox@sha256:abc");
  wire.set_image_id("0123");
  const ContainerStatus status = FromWire(wire);
  EXPECT_EQ(status.created_at, 5);
  EXPECT_EQ(status.started_at, 0);
  EXPECT_EQ(status.finished_at, 0);
  EXPECT_EQ(status.exit_code, -1);
  EXPECT_EQ(status.image, "busybox:1");
  EXPECT_EQ(status.image_ref, "docker.io/library/busybox@sha256:abc");
  EXPECT_EQ(status.image_id, "0123");
}

TEST(ConvertTest, HandlersMayBeMissing) {
  runtime::v1::StatusResponse wire;
  auto& network = *wire.mutable_status()->add_conditions();
  network.set_type("NetworkReady");
  network.set_reason("NetworkPluginNotReady");
  const RuntimeStatus status = FromWire(wire);
  ASSERT_EQ(status.conditions.size(), 1u);
  EXPECT_FALSE(status.conditions[0].status);
  EXPECT_TRUE(status.handlers.empty());
  EXPECT_FALSE(status.supplemental_groups_policy);
}

}  // namespace
}  // namespace keelson::kubelet::cri
