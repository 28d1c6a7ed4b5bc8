// The data directory on a file system of its own: XFS, which shares blocks, and which is small.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include "csi/local/host/filesystem.h"
#include "csi/local/host/image.h"
#include "csi/local/testing/driver_fixture.h"
#include "lib/base/file.h"
#include "lib/linux/mount.h"

namespace keelson::csi::local {
namespace {

using grpc::StatusCode;
using Controller = v1::Controller::Stub;

class SharedBlocksTest : public DriverFixture {
 protected:
  void SetUp() override {
    DriverFixture::SetUp();
    const std::string disk = dir_ + "/disk";
    ASSERT_TRUE(MakeImage(disk, 400 * kMi, false));
    ASSERT_TRUE(Format(disk, "xfs"));
    auto loop = linux::AttachLoop(disk, {.autoclear = true});
    ASSERT_TRUE(loop) << loop.error().message();
    ASSERT_TRUE(MakeDirs(dir_ + "/data"));
    ASSERT_TRUE(linux::MountFilesystem(loop->path, dir_ + "/data", "xfs", 0, ""));
    Start();
  }
  int64_t Free() const { return UsageOf(dir_ + "/data")->available; }
  static void Fill(const std::string& path, int64_t bytes) {
    ASSERT_TRUE(WriteFile(path, std::string(static_cast<size_t>(bytes), 'x')));
    UniqueFd fd = *OpenFile(path, O_RDWR);
    ASSERT_EQ(::fsync(fd.get()), 0);
  }
};

TEST_F(SharedBlocksTest, SnapshotsTakeNoSpace) {
  const std::string volume = CreateVolume("a", 128 * kMi);
  Stage(volume);
  Fill(Staging(volume) + "/file", 64 * kMi);
  const int64_t before = Free();
  const std::string snapshot = CreateSnapshot("s", volume);
  EXPECT_LT(before - Free(), 16 * kMi);
  Fill(Staging(volume) + "/file", 1);
  v1::CreateVolumeRequest request = VolumeRequest("b", 128 * kMi);
  request.mutable_volume_content_source()->mutable_snapshot()->set_snapshot_id(snapshot);
  auto restored = Call(&Controller::CreateVolume, request);
  ASSERT_TRUE(restored.ok()) << restored.message;
  Stage(restored.reply.volume().volume_id());
  EXPECT_EQ(ReadFile(Staging(restored.reply.volume().volume_id()) + "/file")->size(),
            static_cast<size_t>(64 * kMi));
}

TEST_F(SharedBlocksTest, ADeviceInUseHasSnapshots) {
  const std::string volume = CreateVolume("a", 16 * kMi, Block());
  Stage(volume, Block());
  Publish(volume, Block());
  // In the device's cache only: the snapshot has to write it out.
  UniqueFd device = *OpenFile(Target("target"), O_RDWR);
  ASSERT_EQ(::pwrite(device.get(), "before", 6, 4096), 6);
  const std::string snapshot = CreateSnapshot("s", volume);
  ASSERT_EQ(::pwrite(device.get(), "after!", 6, 4096), 6);
  device.Reset();
  EXPECT_EQ(ReadFile(dir_ + "/data/snapshots/" + snapshot + ".img")->substr(4096, 6), "before");
}

TEST_F(SharedBlocksTest, ThickVolumesHaveWhatTheDiskHas) {
  v1::CreateVolumeRequest request = VolumeRequest("a", 256 * kMi);
  (*request.mutable_parameters())["provisioning"] = "thick";
  ASSERT_TRUE(Call(&Controller::CreateVolume, request).ok());
  request.set_name("b");
  EXPECT_EQ(Call(&Controller::CreateVolume, request).code, StatusCode::RESOURCE_EXHAUSTED);
  // Its copy has blocks of its own, for which there is no room.
  v1::CreateVolumeRequest clone = VolumeRequest("c", 256 * kMi);
  (*clone.mutable_parameters())["provisioning"] = "thick";
  clone.mutable_volume_content_source()->mutable_volume()->set_volume_id(
      Call(&Controller::ListVolumes, v1::ListVolumesRequest()).reply.entries(0).volume().volume_id());
  EXPECT_EQ(Call(&Controller::CreateVolume, clone).code, StatusCode::RESOURCE_EXHAUSTED);
}

TEST_F(SharedBlocksTest, AFullDiskIsTold) {
  const std::string volume = CreateVolume("a", 256 * kMi);
  v1::ControllerGetVolumeRequest request;
  request.set_volume_id(volume);
  EXPECT_FALSE(Call(&Controller::ControllerGetVolume, request).reply.status().volume_condition().abnormal());
  Stage(volume);
  Fill(dir_ + "/data/ballast", Free() - 64 * kMi);
  auto answer = Call(&Controller::ControllerGetVolume, request);
  EXPECT_TRUE(answer.reply.status().volume_condition().abnormal());
  EXPECT_THAT(answer.reply.status().volume_condition().message(),
              testing::HasSubstr("writes to this thin volume may fail"));
  EXPECT_EQ(Call(&Controller::CreateVolume, VolumeRequest("b", 1024 * kMi)).code,
            StatusCode::RESOURCE_EXHAUSTED);
}

TEST_F(SharedBlocksTest, WithoutOverprovisioningThinVolumesFit) {
  Stop();
  Start({"--overprovision-ratio=1"});
  CreateVolume("a", 256 * kMi);
  EXPECT_EQ(Call(&Controller::CreateVolume, VolumeRequest("b", 256 * kMi)).code,
            StatusCode::RESOURCE_EXHAUSTED);
}

}  // namespace
}  // namespace keelson::csi::local
