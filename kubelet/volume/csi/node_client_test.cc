#include "kubelet/volume/csi/node_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <latch>
#include <thread>

#include "kubelet/testing/metric_value.h"
#include "kubelet/volume/csi/testing/fake_driver.h"
#include "lib/base/file.h"

namespace keelson::kubelet::csi {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// gRPC's status codes.
constexpr int kCancelled = 1, kUnknown = 2, kInvalidArgument = 3, kDeadlineExceeded = 4, kNotFound = 5,
              kResourceExhausted = 8, kFailedPrecondition = 9, kAborted = 10, kOutOfRange = 11,
              kInternal = 13, kUnavailable = 14;

class NodeClientTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/csi_client.XXXXXX";
    dir_ = ::mkdtemp(name);
    driver_ = std::make_unique<FakeDriver>(dir_ + "/csi.sock");
    client_ = NewNodeClient("disk.example.com", dir_ + "/csi.sock");
  }
  void TearDown() override {
    driver_.reset();
    EXPECT_TRUE(RemoveTree(dir_));
  }

  std::string dir_;
  std::unique_ptr<FakeDriver> driver_;
  std::shared_ptr<NodeClient> client_;
};

TEST_F(NodeClientTest, ReadsWhatTheDriverTells) {
  driver_->SetInfo("node-1", 12, {{"zone", "a"}});
  auto info = client_->GetInfo({});
  ASSERT_TRUE(info) << info.error().message();
  EXPECT_EQ(info->node_id, "node-1");
  EXPECT_EQ(info->max_volumes, 12);
  EXPECT_EQ(info->topology, (Values{{"zone", "a"}}));

  driver_->SetCapabilities({"STAGE_UNSTAGE_VOLUME", "VOLUME_MOUNT_GROUP"});
  auto capabilities = client_->GetCapabilities({});
  ASSERT_TRUE(capabilities);
  EXPECT_TRUE(capabilities->stage);
  EXPECT_TRUE(capabilities->mount_group);
  EXPECT_FALSE(capabilities->expand || capabilities->stats || capabilities->multi_writer);

  driver_->SetUsage({100, 60, 40}, {10, 7, 3}, "disk is dying");
  auto stats = client_->GetStats("vol-1", "/path", {});
  ASSERT_TRUE(stats);
  EXPECT_EQ(stats->bytes->total, 100u);
  EXPECT_EQ(stats->bytes->available, 60u);
  EXPECT_EQ(stats->inodes->used, 3u);
  EXPECT_TRUE(stats->condition->abnormal);
  EXPECT_EQ(stats->condition->message, "disk is dying");
}

TEST_F(NodeClientTest, RequestsAreWhole) {
  driver_->SetCapabilities({"STAGE_UNSTAGE_VOLUME", "EXPAND_VOLUME"});
  VolumeCapability capability;
  capability.access_mode = AccessMode::kSingleNodeWriter;
  capability.fs_type = "xfs";
  capability.mount_flags = {"noatime"};
  capability.group = 2000;
  ASSERT_TRUE(
      client_->Stage({"vol-1", dir_, {{"lun", "1"}}, {{"kind", "fast"}}, {{"key", "x"}}, capability}, {}));
  EXPECT_THAT(driver_->LastRequest("NodeStageVolume"),
              AllOf(HasSubstr("volume_id: \"vol-1\""), HasSubstr("staging_target_path: \"" + dir_ + "\""),
                    HasSubstr("publish_context { key: \"lun\" value: \"1\" }"),
                    HasSubstr("volume_context { key: \"kind\" value: \"fast\" }"),
                    HasSubstr("secrets { key: \"key\" value: \"x\" }"), HasSubstr("fs_type: \"xfs\""),
                    HasSubstr("mount_flags: \"noatime\""), HasSubstr("volume_mount_group: \"2000\""),
                    HasSubstr("mode: SINGLE_NODE_WRITER")));
  capability.block = true;
  ASSERT_TRUE(client_->Publish({"vol-1", dir_ + "/target", dir_, {}, {}, {}, capability, true}, {}));
  EXPECT_THAT(driver_->LastRequest("NodePublishVolume"),
              AllOf(HasSubstr("block { }"), Not(HasSubstr("mount {")), HasSubstr("readonly: true"),
                    HasSubstr("target_path: \"" + dir_ + "/target\"")));
  ASSERT_TRUE(client_->Expand({"vol-1", dir_ + "/target", dir_, 4096, {}, capability}, {}));
  EXPECT_THAT(driver_->LastRequest("NodeExpandVolume"), HasSubstr("required_bytes: 4096"));
  ASSERT_TRUE(client_->Unpublish("vol-1", dir_ + "/target", {}));
  ASSERT_TRUE(client_->Unstage("vol-1", dir_, {}));
  EXPECT_TRUE(driver_->Violations().empty());
}

TEST_F(NodeClientTest, NothingIsAskedWithoutANameOrAPath) {
  EXPECT_EQ(client_->Stage({}, {}).error().message(), "missing volume id");
  EXPECT_EQ(client_->Stage({"v", "", {}, {}, {}, {}}, {}).error().message(), "missing staging target path");
  EXPECT_EQ(client_->Publish({"v", "", "", {}, {}, {}, {}, false}, {}).error().message(),
            "missing target path");
  EXPECT_EQ(client_->Unpublish("v", "", {}).error().message(), "missing target path");
  EXPECT_EQ(client_->Unstage("", "/x", {}).error().message(), "missing volume id");
  EXPECT_EQ(client_->Expand({"v", "", "", 1, {}, {}}, {}).error().message(), "missing volume path");
  EXPECT_TRUE(driver_->Calls().empty());
}

TEST_F(NodeClientTest, SaysWhichErrorsAreFinal) {
  struct Case {
    int code;
    const char* name;
    bool final;
  };
  for (const Case& c : {Case{kCancelled, "Canceled", false},
                        {kDeadlineExceeded, "DeadlineExceeded", false},
                        {kUnavailable, "Unavailable", false},
                        {kResourceExhausted, "ResourceExhausted", false},
                        {kAborted, "Aborted", false},
                        {kFailedPrecondition, "FailedPrecondition", true},
                        {kInvalidArgument, "InvalidArgument", true},
                        {kNotFound, "NotFound", true},
                        {kOutOfRange, "OutOfRange", true},
                        {kUnknown, "Unknown", true},
                        {kInternal, "Internal", true}}) {
    driver_->Fail("NodeUnpublishVolume", c.code, "no");
    auto done = client_->Unpublish("v", "/t", {});
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().message(), std::string("rpc error: code = ") + c.name + " desc = no");
    EXPECT_EQ(IsFinal(done.error()), c.final) << c.name;
    EXPECT_FALSE(done.error().Is(Code::kCancelled)) << "only the caller cancels";
  }
}

TEST_F(NodeClientTest, CallsAreCounted) {
  const auto count = [](const std::string& code) {
    return MetricValue(
        "csi_operations_seconds_count{driver_name=\"disk.example.com\",method_name=\"/csi.v1.Node/"
        "NodeGetInfo\",grpc_status_code=\"" +
        code + "\",migrated=\"false\"}");
  };
  const double good = count("OK"), bad = count("Internal");
  ASSERT_TRUE(client_->GetInfo({}));
  driver_->Fail("NodeGetInfo", kInternal, "no");
  ASSERT_FALSE(client_->GetInfo({}));
  EXPECT_EQ(count("OK") - good, 1);
  EXPECT_EQ(count("Internal") - bad, 1);
}

TEST_F(NodeClientTest, AStopEndsACall) {
  std::stop_source stop;
  std::latch reached(1), ended(1);
  driver_->SetCapabilities({"STAGE_UNSTAGE_VOLUME"});
  driver_->OnDone([&](const std::string&) {
    reached.count_down();
    ended.wait();  // hangs
  });
  std::jthread stopper([&] {
    reached.wait();
    stop.request_stop();
  });
  auto done = client_->Stage({"v", dir_, {}, {}, {}, {}}, stop.get_token());
  ended.count_down();
  driver_.reset();  // its handler is still at the latch
  ASSERT_FALSE(done);
  EXPECT_TRUE(done.error().Is(Code::kCancelled)) << done.error().message();
  EXPECT_FALSE(IsFinal(done.error()));
}

TEST_F(NodeClientTest, ADriverThatIsAwayIsNotWaitedFor) {
  driver_.reset();
  auto done = client_->GetInfo({});
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code(), Code::kUnavailable);
  driver_ = std::make_unique<FakeDriver>(dir_ + "/csi.sock");
  while (!client_->GetInfo({})) std::this_thread::yield();
}

}  // namespace
}  // namespace keelson::kubelet::csi
