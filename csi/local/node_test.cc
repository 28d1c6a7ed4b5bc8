// The service Node: its refusals, call by call as csi-sanity does it, and its devices.
#include <gmock/gmock.h>

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "csi/local/testing/driver_fixture.h"
#include "lib/base/file.h"

namespace keelson::csi::local {
namespace {

using grpc::StatusCode;
using testing::IsEmpty;
using Node = v1::Node::Stub;
using Mode = v1::VolumeCapability::AccessMode;

class NodeTest : public DriverFixture {
 protected:
  void SetUp() override {
    DriverFixture::SetUp();
    Start();
  }
  StatusCode StageCode(const v1::NodeStageVolumeRequest& request) {
    return Call(&Node::NodeStageVolume, request).code;
  }
  StatusCode PublishCode(const v1::NodePublishVolumeRequest& request) {
    return Call(&Node::NodePublishVolume, request).code;
  }
  StatusCode UnpublishCode(const std::string& id, const std::string& target) {
    v1::NodeUnpublishVolumeRequest request;
    request.set_volume_id(id);
    request.set_target_path(target);
    return Call(&Node::NodeUnpublishVolume, request).code;
  }
  StatusCode UnstageCode(const std::string& id, const std::string& path) {
    v1::NodeUnstageVolumeRequest request;
    request.set_volume_id(id);
    request.set_staging_target_path(path);
    return Call(&Node::NodeUnstageVolume, request).code;
  }
  Answer<v1::NodeGetVolumeStatsResponse> Stats(const std::string& id, const std::string& path) {
    v1::NodeGetVolumeStatsRequest request;
    request.set_volume_id(id);
    request.set_volume_path(path);
    return Call(&Node::NodeGetVolumeStats, request);
  }
  Answer<v1::NodeExpandVolumeResponse> Expand(const std::string& id, const std::string& path, int64_t bytes) {
    v1::NodeExpandVolumeRequest request;
    request.set_volume_id(id);
    request.set_volume_path(path);
    request.mutable_capacity_range()->set_required_bytes(bytes);
    return Call(&Node::NodeExpandVolume, request);
  }
  void ExpandVolume(const std::string& id, int64_t bytes) {
    v1::ControllerExpandVolumeRequest request;
    request.set_volume_id(id);
    request.mutable_capacity_range()->set_required_bytes(bytes);
    auto answer = Call(&v1::Controller::Stub::ControllerExpandVolume, request);
    ASSERT_TRUE(answer.ok()) << answer.message;
  }
};

v1::VolumeCapability With(v1::VolumeCapability capability, Mode::Mode mode) {
  capability.mutable_access_mode()->set_mode(mode);
  return capability;
}

uint64_t DeviceSize(const std::string& path) {
  uint64_t size = 0;
  UniqueFd fd = *OpenFile(path, O_RDONLY);
  EXPECT_EQ(::ioctl(fd.get(), BLKGETSIZE64, &size), 0);
  return size;
}

// The file system that this process may grow while it is mounted: of ext4 only with CAP_SYS_RESOURCE.
bool MayGrowOnline(const std::string& type) {
  constexpr int kSysResource = 24;
  const std::string status = ReadFile("/proc/self/status").value_or(""), key = "CapEff:";
  const uint64_t effective = std::stoull(status.substr(status.find(key) + key.size()), nullptr, 16);
  return type != "ext4" || (effective >> kSysResource & 1) != 0;
}

TEST_F(NodeTest, CapabilitiesAreThoseThatHold) {
  auto answer = Call(&Node::NodeGetCapabilities, v1::NodeGetCapabilitiesRequest());
  std::vector<int> types;
  for (const auto& capability : answer.reply.capabilities()) types.push_back(capability.rpc().type());
  using RPC = v1::NodeServiceCapability::RPC;
  EXPECT_THAT(types, testing::UnorderedElementsAre(RPC::STAGE_UNSTAGE_VOLUME, RPC::GET_VOLUME_STATS,
                                                   RPC::EXPAND_VOLUME, RPC::VOLUME_CONDITION,
                                                   RPC::SINGLE_NODE_MULTI_WRITER));
}

TEST_F(NodeTest, StageRefuses) {
  const std::string id = CreateVolume("a", 8 * kMi);
  v1::NodeStageVolumeRequest request = StageRequest(id);
  request.clear_volume_id();
  EXPECT_EQ(StageCode(request), StatusCode::INVALID_ARGUMENT);
  request = StageRequest(id);
  request.clear_staging_target_path();
  EXPECT_EQ(StageCode(request), StatusCode::INVALID_ARGUMENT);
  request = StageRequest(id);
  request.clear_volume_capability();
  EXPECT_EQ(StageCode(request), StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(StageCode(StageRequest(id, With(Mount(), Mode::MULTI_NODE_MULTI_WRITER))),
            StatusCode::INVALID_ARGUMENT);
  request = StageRequest(id);
  request.mutable_volume_capability()->mutable_mount()->add_mount_flags("bind");
  EXPECT_EQ(StageCode(request), StatusCode::INVALID_ARGUMENT);
  request = StageRequest(id);
  request.set_volume_id("fake-vol-id");
  EXPECT_EQ(StageCode(request), StatusCode::NOT_FOUND);
  ASSERT_EQ(::symlink("/etc", (dir_ + "/link").c_str()), 0);
  for (const std::string& path :
       {dir_ + "/none", dir_ + "/link", dir_ + "/staging/../staging", std::string("rel")}) {
    request = StageRequest(id);
    request.set_staging_target_path(path);
    EXPECT_EQ(StageCode(request), StatusCode::INVALID_ARGUMENT) << path;
  }
  EXPECT_THAT(Mounts(), IsEmpty());
  EXPECT_THAT(Loops(), IsEmpty());
}

TEST_F(NodeTest, PublishRefuses) {
  const std::string id = CreateVolume("a", 32 * kMi);
  v1::NodePublishVolumeRequest request = PublishRequest("");
  EXPECT_EQ(PublishCode(request), StatusCode::INVALID_ARGUMENT);
  request = PublishRequest("fake-vol-id");
  request.clear_target_path();
  EXPECT_EQ(PublishCode(request), StatusCode::INVALID_ARGUMENT);
  request = PublishRequest("fake-vol-id");
  request.clear_volume_capability();
  EXPECT_EQ(PublishCode(request), StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(PublishCode(PublishRequest("fake-vol-id")), StatusCode::NOT_FOUND);
  request = PublishRequest(id);
  request.clear_staging_target_path();
  EXPECT_EQ(PublishCode(request), StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(PublishCode(PublishRequest(id)), StatusCode::FAILED_PRECONDITION) << "it is not staged";
  EXPECT_EQ(PublishCode(PublishRequest(id, Block())), StatusCode::FAILED_PRECONDITION);
  Stage(id);
  EXPECT_EQ(PublishCode(PublishRequest(id, Block())), StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(PublishCode(PublishRequest(id, Mount(), "none/target")), StatusCode::FAILED_PRECONDITION);
  ASSERT_TRUE(MakeDirs(dir_ + "/elsewhere"));
  ASSERT_EQ(::symlink("../elsewhere", Target("link").c_str()), 0);
  EXPECT_EQ(PublishCode(PublishRequest(id, Mount(), "link")), StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(PublishCode(PublishRequest(id, Mount(), "link/target")), StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(PublishCode(PublishRequest(id, Mount(), "../elsewhere")), StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(Mounts().size(), 1u);
}

TEST_F(NodeTest, UnpublishAndUnstageRefuseAndRepeat) {
  const std::string id = CreateVolume("a", 8 * kMi);
  EXPECT_EQ(UnpublishCode("", Target("target")), StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(UnpublishCode(id, ""), StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(UnpublishCode("fake-vol-id", Target("target")), StatusCode::NOT_FOUND);
  EXPECT_EQ(UnstageCode("", Staging(id)), StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(UnstageCode(id, ""), StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(UnstageCode("fake-vol-id", Staging(id)), StatusCode::NOT_FOUND);
  EXPECT_EQ(UnpublishCode(id, Target("target")), StatusCode::OK);
  EXPECT_EQ(UnstageCode(id, Staging(id)), StatusCode::OK);
  ASSERT_TRUE(MakeDirs(Target("full")));
  ASSERT_TRUE(WriteFile(Target("full") + "/file", "somebody's"));
  EXPECT_EQ(UnpublishCode(id, Target("full")), StatusCode::FAILED_PRECONDITION);
  EXPECT_TRUE(PathExists(Target("full") + "/file"));
}

TEST_F(NodeTest, OneVolumeDoesNotUnmountAnother) {
  const std::string a = CreateVolume("a", 8 * kMi), b = CreateVolume("b", 8 * kMi);
  Stage(a);
  Publish(a);
  EXPECT_EQ(UnstageCode(b, Staging(a)), StatusCode::OK);
  EXPECT_EQ(UnpublishCode(b, Target("target")), StatusCode::FAILED_PRECONDITION);
  v1::NodeStageVolumeRequest stage = StageRequest(b);
  stage.set_staging_target_path(Staging(a));
  EXPECT_EQ(StageCode(stage), StatusCode::FAILED_PRECONDITION);
  Stage(b);
  EXPECT_EQ(PublishCode(PublishRequest(b)), StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(Mounts().size(), 3u);
}

TEST_F(NodeTest, AVolumeInUseIsNotDeleted) {
  const std::string id = CreateVolume("a", 8 * kMi);
  Stage(id);
  v1::DeleteVolumeRequest request;
  request.set_volume_id(id);
  EXPECT_EQ(Call(&v1::Controller::Stub::DeleteVolume, request).code, StatusCode::FAILED_PRECONDITION);
  Unstage(id);
  DeleteVolume(id);
}

TEST_F(NodeTest, StatsAreOfTheVolumeAtThePath) {
  const std::string id = CreateVolume("a", 32 * kMi), other = CreateVolume("b", 32 * kMi);
  EXPECT_EQ(Stats("", "some/path").code, StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(Stats(id, "").code, StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(Stats("fake-vol-id", "some/path").code, StatusCode::NOT_FOUND);
  Stage(id);
  Publish(id);
  EXPECT_EQ(Stats(id, "some/path").code, StatusCode::NOT_FOUND);
  EXPECT_EQ(Stats(id, "/").code, StatusCode::NOT_FOUND);
  EXPECT_EQ(Stats(other, Target("target")).code, StatusCode::NOT_FOUND);
  for (const std::string& path : {Target("target"), Staging(id)}) {
    auto stats = Stats(id, path);
    ASSERT_TRUE(stats.ok()) << stats.message;
    ASSERT_EQ(stats.reply.usage_size(), 2);
    const v1::VolumeUsage &bytes = stats.reply.usage(0), &inodes = stats.reply.usage(1);
    EXPECT_EQ(bytes.unit(), v1::VolumeUsage::BYTES);
    EXPECT_GT(bytes.available(), 0);
    EXPECT_LE(bytes.total(), 32 * kMi);
    EXPECT_LE(bytes.used() + bytes.available(), bytes.total());
    EXPECT_EQ(inodes.unit(), v1::VolumeUsage::INODES);
    EXPECT_EQ(inodes.used() + inodes.available(), inodes.total());
    EXPECT_FALSE(stats.reply.volume_condition().abnormal());
  }
}

TEST_F(NodeTest, ExpandRefuses) {
  const std::string id = CreateVolume("a", 32 * kMi);
  EXPECT_EQ(Expand("", Target("target"), 0).code, StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(Expand(id, "", 0).code, StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(Expand("fake-vol-id", "some/path", 0).code, StatusCode::NOT_FOUND);
  EXPECT_EQ(Expand(id, Target("target"), 0).code, StatusCode::NOT_FOUND);
  Stage(id);
  Publish(id);
  EXPECT_EQ(Expand(id, Target("target"), int64_t{1} << 60).code, StatusCode::OUT_OF_RANGE);
}

TEST_F(NodeTest, TheNodeGrowsAVolumeThatNoControllerHasGrown) {
  const std::string id = CreateVolume("a", 300 * kMi, Mount("xfs"));
  Stage(id, Mount("xfs"));
  Publish(id, Mount("xfs"));
  const int64_t before = Stats(id, Target("target")).reply.usage(0).total();
  auto answer = Expand(id, Target("target"), 400 * kMi);
  ASSERT_TRUE(answer.ok()) << answer.message;
  EXPECT_EQ(answer.reply.capacity_bytes(), 400 * kMi);
  EXPECT_GT(Stats(id, Target("target")).reply.usage(0).total(), before + 50 * kMi);
}

TEST_F(NodeTest, FileSystemsGrowWhileMounted) {
  for (const std::string type : {"ext4", "xfs"}) {
    if (!MayGrowOnline(type)) continue;
    const int64_t bytes = (type == "xfs" ? 300 : 32) * kMi;
    const std::string id = CreateVolume("a-" + type, bytes, Mount(type));
    Stage(id, Mount(type));
    Publish(id, Mount(type), type);
    const int64_t before = Stats(id, Target(type)).reply.usage(0).total();
    ExpandVolume(id, 2 * bytes);
    for (int i = 0; i < 2; ++i) {
      auto answer = Expand(id, Target(type), 2 * bytes);
      ASSERT_TRUE(answer.ok()) << answer.message;
      EXPECT_EQ(answer.reply.capacity_bytes(), 2 * bytes);
    }
    EXPECT_GT(Stats(id, Target(type)).reply.usage(0).total(), before + bytes / 2) << type;
  }
}

TEST_F(NodeTest, AFileSystemThatGrewOfflineGrowsAtStage) {
  for (const std::string type : {"ext4", "xfs"}) {
    const int64_t bytes = (type == "xfs" ? 300 : 32) * kMi;
    const std::string id = CreateVolume("a-" + type, bytes, Mount(type));
    Stage(id, Mount(type));
    const int64_t before = Stats(id, Staging(id)).reply.usage(0).total();
    ASSERT_TRUE(WriteFile(Staging(id) + "/file", "kept"));
    Unstage(id);
    ExpandVolume(id, 2 * bytes);
    Stage(id, Mount(type));
    EXPECT_GT(Stats(id, Staging(id)).reply.usage(0).total(), before + bytes / 2) << type;
    EXPECT_EQ(*ReadFile(Staging(id) + "/file"), "kept");
  }
}

TEST_F(NodeTest, DevicesAreBoundAndGrow) {
  const std::string id = CreateVolume("a", 8 * kMi, Block());
  for (int i = 0; i < 2; ++i) {
    Stage(id, Block());
    Publish(id, Block());
  }
  EXPECT_EQ(Loops().size(), 1u);
  EXPECT_EQ(Mounts().size(), 1u);
  EXPECT_EQ(DeviceSize(Target("target")), static_cast<uint64_t>(8 * kMi));
  auto stats = Stats(id, Target("target"));
  ASSERT_EQ(stats.reply.usage_size(), 1) << stats.message;
  EXPECT_EQ(stats.reply.usage(0).total(), 8 * kMi);
  ExpandVolume(id, 16 * kMi);
  ASSERT_TRUE(Expand(id, Target("target"), 16 * kMi).ok());
  EXPECT_EQ(DeviceSize(Target("target")), static_cast<uint64_t>(16 * kMi));
  ASSERT_TRUE(WriteFile(Target("target"), "device"));
  EXPECT_EQ(StageCode(StageRequest(id)), StatusCode::FAILED_PRECONDITION) << "it is in use as a device";
  Unpublish(id);
  EXPECT_FALSE(PathExists(Target("target")));
  Unstage(id);
  EXPECT_THAT(Loops(), IsEmpty());
  // Data that is no file system: nothing formats it.
  EXPECT_EQ(StageCode(StageRequest(id)), StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(ReadFile(Image(id))->substr(0, 6), "device");
  EXPECT_THAT(Loops(), IsEmpty());
}

TEST_F(NodeTest, AReadersDeviceCannotBeWritten) {
  const std::string id = CreateVolume("a", 8 * kMi, Block());
  Stage(id, Block());
  v1::NodePublishVolumeRequest request = PublishRequest(id, Block());
  request.set_readonly(true);
  EXPECT_EQ(PublishCode(request), StatusCode::INVALID_ARGUMENT) << "the device could be written";
  Unstage(id);
  const v1::VolumeCapability reader = With(Block(), Mode::SINGLE_NODE_READER_ONLY);
  Stage(id, reader);
  request = PublishRequest(id, reader);
  request.set_readonly(true);
  EXPECT_EQ(PublishCode(request), StatusCode::OK);
  EXPECT_FALSE(WriteFile(Target("target"), "x"));
  EXPECT_EQ(StageCode(StageRequest(id, Block())), StatusCode::ALREADY_EXISTS);
}

}  // namespace
}  // namespace keelson::csi::local
