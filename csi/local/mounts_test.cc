// File systems through their life: made once, kept, read-only where asked for, held to their capacity.
#include <gmock/gmock.h>

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <thread>

#include "csi/local/host/image.h"
#include "csi/local/testing/driver_fixture.h"
#include "lib/base/file.h"

namespace keelson::csi::local {
namespace {

using grpc::StatusCode;
using testing::IsEmpty;
using Mode = v1::VolumeCapability::AccessMode;

class MountsTest : public DriverFixture {
 protected:
  void SetUp() override {
    DriverFixture::SetUp();
    Start();
  }
  StatusCode PublishCode(const v1::NodePublishVolumeRequest& request) {
    return Call(&v1::Node::Stub::NodePublishVolume, request).code;
  }
};

TEST_F(MountsTest, ContentIsKeptAndNewVolumesAreEmpty) {
  for (const std::string type : {"ext4", "xfs"}) {
    const int64_t bytes = (type == "xfs" ? 300 : 16) * kMi;
    const std::string id = CreateVolume(type, bytes, Mount(type));
    for (int i = 0; i < 2; ++i) {
      Stage(id, Mount(type));
      Publish(id, Mount(type));
    }
    EXPECT_EQ(Mounts().size(), 2u);
    ASSERT_TRUE(WriteFile(Target("target") + "/file", "kept"));
    Unpublish(id);
    EXPECT_FALSE(PathExists(Target("target")));
    Unstage(id);
    EXPECT_THAT(Loops(), IsEmpty());
    EXPECT_TRUE(PathExists(Staging(id))) << "the directory is the caller's";
    Stage(id, Mount(type));
    EXPECT_EQ(*ReadFile(Staging(id) + "/file"), "kept");
    auto other =
        Call(&v1::Node::Stub::NodeStageVolume, StageRequest(id, Mount(type == "xfs" ? "ext4" : "xfs")));
    EXPECT_EQ(other.code, StatusCode::ALREADY_EXISTS);
    Unstage(id);
    other = Call(&v1::Node::Stub::NodeStageVolume, StageRequest(id, Mount(type == "xfs" ? "ext4" : "xfs")));
    EXPECT_EQ(other.code, StatusCode::FAILED_PRECONDITION) << "it holds another file system";
    DeleteVolume(id);
    const std::string again = CreateVolume(type, bytes, Mount(type));
    EXPECT_EQ(again, id);
    EXPECT_TRUE(*IsZeros(Image(again)));
    Stage(again, Mount(type));
    EXPECT_FALSE(PathExists(Staging(again) + "/file"));
    Unstage(again);
  }
}

TEST_F(MountsTest, CapacityIsHeld) {
  const std::string id = CreateVolume("a", 16 * kMi);
  Stage(id);
  auto written = WriteFile(Staging(id) + "/file", std::string(17 * kMi, 'x'));
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().errnum(), ENOSPC);
}

TEST_F(MountsTest, ReadersCannotWrite) {
  const std::string id = CreateVolume("a", 16 * kMi);
  Stage(id);
  v1::NodePublishVolumeRequest request = PublishRequest(id, Mount(), "reader");
  request.set_readonly(true);
  EXPECT_EQ(PublishCode(request), StatusCode::OK);
  EXPECT_EQ(PublishCode(request), StatusCode::OK);
  EXPECT_EQ(WriteFile(Target("reader") + "/file", "x").error().errnum(), EROFS);
  request.set_readonly(false);
  EXPECT_EQ(PublishCode(request), StatusCode::ALREADY_EXISTS);
  Publish(id, Mount(), "writer");
  EXPECT_TRUE(WriteFile(Target("writer") + "/file", "x"));
  v1::VolumeCapability reader = Mount();
  reader.mutable_access_mode()->set_mode(Mode::SINGLE_NODE_READER_ONLY);
  Publish(id, reader, "only");
  EXPECT_EQ(WriteFile(Target("only") + "/file", "x").error().errnum(), EROFS);
}

TEST_F(MountsTest, TheSingleWriterIsAlone) {
  const std::string id = CreateVolume("a", 16 * kMi);
  Stage(id);
  v1::VolumeCapability single = Mount();
  single.mutable_access_mode()->set_mode(Mode::SINGLE_NODE_SINGLE_WRITER);
  Publish(id, single, "first");
  Publish(id, single, "first");
  EXPECT_EQ(PublishCode(PublishRequest(id, single, "second")), StatusCode::FAILED_PRECONDITION);
  EXPECT_FALSE(PathExists(Target("second")));
  Unpublish(id, "first");
  Publish(id, single, "second");
  v1::VolumeCapability multi = Mount();
  multi.mutable_access_mode()->set_mode(Mode::SINGLE_NODE_MULTI_WRITER);
  Publish(id, multi, "third");
}

TEST_F(MountsTest, OptionsReachTheKernel) {
  const std::string id = CreateVolume("a", 16 * kMi);
  v1::VolumeCapability capability = Mount();
  capability.mutable_mount()->add_mount_flags("noexec");
  capability.mutable_mount()->add_mount_flags("nodev,noatime");
  Stage(id, capability);
  Publish(id, capability);
  struct statvfs info = {};
  ASSERT_EQ(::statvfs(Target("target").c_str(), &info), 0);
  EXPECT_EQ(info.f_flag & (ST_NOEXEC | ST_NODEV | ST_NOATIME),
            static_cast<unsigned long>(ST_NOEXEC | ST_NODEV | ST_NOATIME));
  const std::string other = CreateVolume("b", 16 * kMi);
  capability.mutable_mount()->add_mount_flags("nosuchoption");
  auto answer = Call(&v1::Node::Stub::NodeStageVolume, StageRequest(other, capability));
  EXPECT_EQ(answer.code, StatusCode::INTERNAL);
  EXPECT_EQ(Loops().size(), 1u) << "nothing remains of what failed";
}

TEST_F(MountsTest, ALazyUserKeepsTheVolume) {
  const std::string id = CreateVolume("a", 16 * kMi);
  Stage(id);
  Publish(id);
  auto file = OpenFile(Target("target") + "/file", O_RDWR | O_CREAT);
  ASSERT_TRUE(file);
  v1::NodeUnpublishVolumeRequest request;
  request.set_volume_id(id);
  request.set_target_path(Target("target"));
  auto answer = Call(&v1::Node::Stub::NodeUnpublishVolume, request);
  EXPECT_EQ(answer.code, StatusCode::INTERNAL);
  EXPECT_THAT(answer.message, testing::HasSubstr("busy"));
  file->Reset();
  Unpublish(id);
}

TEST_F(MountsTest, CallsOnOneVolumeDoNotMeet) {
  const std::string id = CreateVolume("a", 300 * kMi, Mount("xfs"));
  // mkfs takes a while; of calls meanwhile each is refused, or finds the work done.
  std::vector<StatusCode> codes(4);
  std::vector<std::thread> threads;
  for (StatusCode& code : codes) {
    threads.emplace_back(
        [&] { code = Call(&v1::Node::Stub::NodeStageVolume, StageRequest(id, Mount("xfs"))).code; });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(codes, testing::Contains(StatusCode::OK));
  EXPECT_THAT(codes, testing::Each(testing::AnyOf(StatusCode::OK, StatusCode::ABORTED)));
  EXPECT_EQ(Mounts().size(), 1u);
  EXPECT_EQ(Loops().size(), 1u);
}

TEST_F(MountsTest, ADeviceShowsNothingOfAnother) {
  for (const char* provisioning : {"thin", "thick"}) {
    v1::CreateVolumeRequest request = VolumeRequest("first", 8 * kMi, Block());
    (*request.mutable_parameters())["provisioning"] = provisioning;
    std::string id = Call(&v1::Controller::Stub::CreateVolume, request).reply.volume().volume_id();
    Stage(id, Block());
    Publish(id, Block());
    const std::string secret(static_cast<size_t>(8 * kMi), 's');
    ASSERT_TRUE(WriteFile(Target("target"), secret));
    Unpublish(id);
    Unstage(id);
    DeleteVolume(id);
    request.set_name("second");
    id = Call(&v1::Controller::Stub::CreateVolume, request).reply.volume().volume_id();
    Stage(id, Block());
    Publish(id, Block());
    const std::string content = *ReadFile(Target("target"));
    EXPECT_EQ(content.size(), secret.size());
    EXPECT_EQ(content.find_first_not_of('\0'), std::string::npos) << provisioning;
    Unpublish(id);
    Unstage(id);
    DeleteVolume(id);
  }
}

// An identity is a key, never a path.
TEST_F(MountsTest, NoIdentityLeadsOutOfTheDataDirectory) {
  const std::string victim = dir_ + "/victim.img";
  ASSERT_TRUE(WriteFile(victim, "somebody's"));
  ASSERT_TRUE(WriteFile(dir_ + "/victim.json", "somebody's"));
  for (const std::string& id :
       {std::string("../../victim"), dir_ + "/victim", std::string("vol-../../../victim"), std::string("."),
        std::string("vol-0\0../victim", 15), std::string(100000, '/')}) {
    EXPECT_EQ(Call(&v1::Node::Stub::NodeStageVolume,
                   [&] {
                     v1::NodeStageVolumeRequest request = StageRequest("x");
                     request.set_volume_id(id);
                     return request;
                   }())
                  .code,
              StatusCode::NOT_FOUND);
    v1::ControllerExpandVolumeRequest expand;
    expand.set_volume_id(id);
    expand.mutable_capacity_range()->set_required_bytes(8 * kMi);
    EXPECT_EQ(Call(&v1::Controller::Stub::ControllerExpandVolume, expand).code, StatusCode::NOT_FOUND);
    v1::CreateSnapshotRequest snapshot;
    snapshot.set_name("s");
    snapshot.set_source_volume_id(id);
    EXPECT_EQ(Call(&v1::Controller::Stub::CreateSnapshot, snapshot).code, StatusCode::NOT_FOUND);
    DeleteVolume(id);
    DeleteSnapshot(id);
  }
  EXPECT_EQ(*ReadFile(victim), "somebody's");
  EXPECT_TRUE(PathExists(dir_ + "/victim.json"));
}

}  // namespace
}  // namespace keelson::csi::local
