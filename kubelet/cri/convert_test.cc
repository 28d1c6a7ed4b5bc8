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

TEST(ConvertTest, ARuntimeMayMissWhyAContainerWasKilled) {
  struct Case {
    const char* what;
    ContainerState state;
    int32_t exit_code;
    const char *id, *reason, *want;
  };
  for (const Case& c : {Case{"missed", ContainerState::kExited, 137, "victim", "Error", "OOMKilled"},
                        {"no word of it", ContainerState::kExited, 137, "victim", "", "OOMKilled"},
                        {"killed by others", ContainerState::kExited, 137, "other", "Error", "Error"},
                        {"ended by itself", ContainerState::kExited, 1, "victim", "Error", "Error"},
                        {"never began", ContainerState::kExited, 137, "victim", "StartError", "StartError"},
                        {"goes on without a process of it", ContainerState::kRunning, 0, "victim", "", ""}}) {
    ContainerStatus status;
    status.id = c.id;
    status.state = c.state;
    status.exit_code = c.exit_code;
    status.reason = c.reason;
    SetOomKilled([](const std::string& id) { return id == "victim"; }, status);
    EXPECT_EQ(status.reason, c.want) << c.what;
    status.reason = c.reason;
    SetOomKilled(nullptr, status);
    EXPECT_EQ(status.reason, c.reason) << c.what << ", and nobody else knows";
  }
}

TEST(ConvertTest, LayersOfContainersMayBeApart) {
  struct Case {
    const char* what;
    std::vector<std::string> images, containers, want;
  };
  for (const Case& c : {Case{"containerd 1.6", {"/snapshots"}, {}, {"/snapshots"}},
                        {"CRI-O",
                         {"/storage/overlay-images"},
                         {"/storage/overlay-containers"},
                         {"/storage/overlay-containers"}},
                        {"nothing yet", {}, {}, {}}}) {
    runtime::v1::ImageFsInfoResponse wire;
    for (const auto& path : c.images) wire.add_image_filesystems()->mutable_fs_id()->set_mountpoint(path);
    for (const auto& path : c.containers) {
      wire.add_container_filesystems()->mutable_fs_id()->set_mountpoint(path);
    }
    const ImageFilesystems systems = FromWire(wire);
    EXPECT_EQ(systems.images.size(), c.images.size()) << c.what;
    std::vector<std::string> got;
    for (const FilesystemUsage& item : systems.containers) got.push_back(item.mountpoint);
    EXPECT_EQ(got, c.want) << c.what;
  }
}

// A container that has just started: CRI-O reports it before the first measurement.
TEST(ConvertTest, WhatIsNotMeasuredIsNotZero) {
  runtime::v1::ContainerStats wire;
  wire.mutable_attributes()->set_id("c1");
  wire.mutable_attributes()->mutable_metadata()->set_name("main");
  ContainerStats stats = FromWire(wire);
  EXPECT_EQ(stats.name, "main");
  EXPECT_FALSE(stats.cpu_usage_core_nanos || stats.memory_usage_bytes || stats.memory_working_set_bytes ||
               stats.memory_rss_bytes || stats.writable_layer_bytes);
  wire.mutable_cpu()->mutable_usage_core_nano_seconds();  // there, and zero
  wire.mutable_writable_layer()->mutable_used_bytes()->set_value(7);
  stats = FromWire(wire);
  EXPECT_EQ(stats.cpu_usage_core_nanos, 0u);
  EXPECT_EQ(stats.writable_layer_bytes, 7u);
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
