// Volumes of type directory. Where the kernel has project quotas, also on a file system that has them.
#include <gmock/gmock.h>

#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "csi/local/host/image.h"
#include "csi/local/host/project_quota.h"
#include "csi/local/host/run.h"
#include "csi/local/testing/driver_fixture.h"
#include "lib/base/file.h"
#include "lib/linux/mount.h"

namespace keelson::csi::local {
namespace {

using grpc::StatusCode;
using testing::IsEmpty;
using Controller = v1::Controller::Stub;
using Node = v1::Node::Stub;

class DirectoryTest : public DriverFixture {
 protected:
  static v1::CreateVolumeRequest Request(const std::string& name, int64_t bytes,
                                         const v1::VolumeCapability& capability = Mount()) {
    v1::CreateVolumeRequest request = VolumeRequest(name, bytes, capability);
    (*request.mutable_parameters())["type"] = "directory";
    return request;
  }
  std::string Create(const v1::CreateVolumeRequest& request) {
    auto answer = Call(&Controller::CreateVolume, request);
    EXPECT_TRUE(answer.ok()) << answer.message;
    return answer.reply.volume().volume_id();
  }
  std::string Directory(const std::string& id) const { return dir_ + "/data/volumes/" + id + ".dir"; }
};

TEST_F(DirectoryTest, CapacityThatNothingHoldsIsRefused) {
  Start();
  ASSERT_FALSE(*HasProjectQuotas(dir_ + "/data")) << "this test needs a file system without project quotas";
  auto answer = Call(&Controller::CreateVolume, Request("a", 8 * kMi));
  EXPECT_EQ(answer.code, StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(answer.message, testing::HasSubstr("prjquota"));
  EXPECT_THAT(Files("volumes"), IsEmpty());
  v1::GetCapacityRequest capacity;
  (*capacity.mutable_parameters())["type"] = "directory";
  EXPECT_EQ(Call(&Controller::GetCapacity, capacity).reply.available_capacity(), 0);
}

TEST_F(DirectoryTest, WhatADirectoryIsNotIsRefused) {
  Start({"--directory-quotas=false"});
  EXPECT_EQ(Call(&Controller::CreateVolume, Request("a", 8 * kMi, Block())).code,
            StatusCode::INVALID_ARGUMENT);
  v1::CreateVolumeRequest thick = Request("a", 8 * kMi);
  (*thick.mutable_parameters())["provisioning"] = "thick";
  EXPECT_EQ(Call(&Controller::CreateVolume, thick).code, StatusCode::INVALID_ARGUMENT);
  const std::string id = Create(Request("a", 8 * kMi));
  EXPECT_EQ(Call(&Controller::CreateVolume, VolumeRequest("a", 8 * kMi)).code, StatusCode::ALREADY_EXISTS);
  EXPECT_EQ(Call(&Node::NodeStageVolume, StageRequest(id, Block())).code, StatusCode::INVALID_ARGUMENT);
  v1::NodeStageVolumeRequest stage = StageRequest(id);
  stage.mutable_volume_capability()->mutable_mount()->add_mount_flags("noatime");
  EXPECT_EQ(Call(&Node::NodeStageVolume, stage).code, StatusCode::INVALID_ARGUMENT);
  v1::CreateVolumeRequest image = VolumeRequest("b", 8 * kMi);
  image.mutable_volume_content_source()->mutable_volume()->set_volume_id(id);
  EXPECT_EQ(Call(&Controller::CreateVolume, image).code, StatusCode::INVALID_ARGUMENT);
  v1::CreateVolumeGroupSnapshotRequest group;
  group.set_name("g");
  group.add_source_volume_ids(id);
  EXPECT_EQ(Call(&v1::GroupController::Stub::CreateVolumeGroupSnapshot, group).code,
            StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(Loops(), IsEmpty());
}

TEST_F(DirectoryTest, ContentIsKeptUntilTheVolumeIsDeleted) {
  Start({"--directory-quotas=false"});
  const std::string id = Create(Request("a", 8 * kMi));
  for (int i = 0; i < 2; ++i) {
    Stage(id);
    Publish(id);
  }
  EXPECT_EQ(Mounts().size(), 2u);
  EXPECT_THAT(Loops(), IsEmpty());
  ASSERT_TRUE(WriteFile(Target("target") + "/file", "kept"));
  v1::NodeGetVolumeStatsRequest stats;
  stats.set_volume_id(id);
  stats.set_volume_path(Target("target"));
  EXPECT_EQ(Call(&Node::NodeGetVolumeStats, stats).reply.usage_size(), 2);
  v1::DeleteVolumeRequest remove;
  remove.set_volume_id(id);
  EXPECT_EQ(Call(&Controller::DeleteVolume, remove).code, StatusCode::FAILED_PRECONDITION) << "it is in use";
  Kill();
  Start({"--directory-quotas=false"});
  Unpublish(id);
  Unstage(id);
  EXPECT_THAT(Mounts(), IsEmpty());
  EXPECT_EQ(*ReadFile(Directory(id) + "/file"), "kept");
  DeleteVolume(id);
  EXPECT_THAT(Files("volumes"), IsEmpty());
  EXPECT_EQ(Create(Request("a", 8 * kMi)), id);
  EXPECT_THAT(*ListDir(Directory(id)), IsEmpty()) << "a new volume holds nothing of an old one";
}

TEST_F(DirectoryTest, ReadersCannotWrite) {
  Start({"--directory-quotas=false"});
  const std::string id = Create(Request("a", 8 * kMi));
  Stage(id);
  v1::NodePublishVolumeRequest request = PublishRequest(id);
  request.set_readonly(true);
  ASSERT_TRUE(Call(&Node::NodePublishVolume, request).ok());
  EXPECT_FALSE(WriteFile(Target("target") + "/file", "x"));
  EXPECT_TRUE(WriteFile(Staging(id) + "/file", "x"));
}

TEST_F(DirectoryTest, CopiesAreOfIdleVolumesAndComplete) {
  Start({"--directory-quotas=false"});
  const std::string id = Create(Request("a", 8 * kMi));
  Stage(id);
  ASSERT_TRUE(MakeDirs(Staging(id) + "/folder"));
  ASSERT_TRUE(WriteFile(Staging(id) + "/folder/file", "content"));
  ASSERT_EQ(::chown((Staging(id) + "/folder/file").c_str(), 1000, 2000), 0);
  ASSERT_EQ(::chmod((Staging(id) + "/folder/file").c_str(), 0640), 0);
  ASSERT_EQ(::symlink("/etc/passwd", (Staging(id) + "/link").c_str()), 0);
  ASSERT_EQ(::chmod(Staging(id).c_str(), 02770), 0);
  v1::CreateSnapshotRequest snapshot;
  snapshot.set_name("s");
  snapshot.set_source_volume_id(id);
  EXPECT_EQ(Call(&Controller::CreateSnapshot, snapshot).code, StatusCode::FAILED_PRECONDITION)
      << "it is in use";
  Unstage(id);
  const std::string taken = CreateSnapshot("s", id);
  v1::CreateVolumeRequest restore = Request("b", 8 * kMi);
  restore.mutable_volume_content_source()->mutable_snapshot()->set_snapshot_id(taken);
  v1::CreateVolumeRequest clone = Request("c", 8 * kMi);
  clone.mutable_volume_content_source()->mutable_volume()->set_volume_id(id);
  for (const std::string& copy : {Create(restore), Create(clone)}) {
    EXPECT_EQ(*ReadFile(Directory(copy) + "/folder/file"), "content");
    struct stat info = {};
    ASSERT_EQ(::stat((Directory(copy) + "/folder/file").c_str(), &info), 0);
    EXPECT_EQ(info.st_uid, 1000u);
    EXPECT_EQ(info.st_gid, 2000u);
    EXPECT_EQ(info.st_mode & 07777u, 0640u);
    ASSERT_EQ(::lstat((Directory(copy) + "/link").c_str(), &info), 0);
    EXPECT_TRUE(S_ISLNK(info.st_mode));
    ASSERT_EQ(::stat(Directory(copy).c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 07777u, 02770u);
    DeleteVolume(copy);
  }
  DeleteSnapshot(taken);
  DeleteVolume(id);
  EXPECT_THAT(Files("volumes"), IsEmpty());
  EXPECT_THAT(Files("snapshots"), IsEmpty());
  EXPECT_THAT(Files("tmp"), IsEmpty());
}

TEST_F(DirectoryTest, AStartRemovesWhatHasNoRecord) {
  ASSERT_TRUE(MakeDirs(dir_ + "/data/tmp/vol-0123456789012345678901234567890123456789.dir/folder"));
  ASSERT_TRUE(MakeDirs(dir_ + "/data/volumes/vol-0123456789012345678901234567890123456789.dir/folder"));
  Start();
  EXPECT_THAT(Files("tmp"), IsEmpty());
  EXPECT_THAT(Files("volumes"), IsEmpty());
}

struct QuotaDisk {
  const char* type;
  std::vector<std::string> mkfs;
};

class DirectoryQuotaTest : public DirectoryTest, public testing::WithParamInterface<QuotaDisk> {
 protected:
  void SetUp() override {
    DriverFixture::SetUp();
    const std::string disk = dir_ + "/disk";
    ASSERT_TRUE(MakeImage(disk, 400 * kMi, false));
    std::vector<std::string> mkfs = GetParam().mkfs;
    mkfs.push_back(disk);
    auto made = RunProgram(mkfs);
    ASSERT_TRUE(made) << made.error().message();
    ASSERT_TRUE(made->status.ok()) << made->output;
    auto loop = linux::AttachLoop(disk, {.autoclear = true});
    ASSERT_TRUE(loop) << loop.error().message();
    ASSERT_TRUE(MakeDirs(dir_ + "/data"));
    auto mounted = linux::MountFilesystem(loop->path, dir_ + "/data", GetParam().type, 0, "prjquota");
    if (!mounted) GTEST_SKIP() << "this kernel has no project quotas: " << mounted.error().message();
    if (!*HasProjectQuotas(dir_ + "/data")) GTEST_SKIP() << "this kernel has no project quotas";
    Start();
  }
  // As a container does it: CAP_SYS_RESOURCE exempts from quotas of ext4.
  static bool WriteMiB(const std::string& path, int count) {
    auto ended = RunProgram({"setpriv", "--bounding-set=-sys_resource", "dd", "if=/dev/zero", "of=" + path,
                             "bs=1M", "count=" + std::to_string(count)});
    EXPECT_TRUE(ended) << ended.error().message();
    return ended && ended->status.ok();
  }
  int64_t SizeAt(const std::string& path) {
    struct statvfs info = {};
    EXPECT_EQ(::statvfs(path.c_str(), &info), 0);
    return static_cast<int64_t>(info.f_blocks * info.f_frsize);
  }
};

INSTANTIATE_TEST_SUITE_P(Disks, DirectoryQuotaTest,
                         testing::Values(QuotaDisk{"ext4",
                                                   {"mkfs.ext4", "-q", "-F", "-O", "quota,project", "-E",
                                                    "quotatype=prjquota"}},
                                         QuotaDisk{"xfs", {"mkfs.xfs", "-q"}}),
                         [](const auto& disk) { return disk.param.type; });

TEST_P(DirectoryQuotaTest, CapacityIsHeldAndGrows) {
  const std::string id = Create(Request("a", 8 * kMi)), other = Create(Request("b", 8 * kMi));
  Stage(id);
  EXPECT_EQ(SizeAt(Staging(id)), 8 * kMi);
  EXPECT_FALSE(WriteMiB(Staging(id) + "/file", 16));
  Stage(other);
  EXPECT_TRUE(WriteMiB(Staging(other) + "/file", 4)) << "the other volume has its own limit";
  v1::ControllerExpandVolumeRequest expand;
  expand.set_volume_id(id);
  expand.mutable_capacity_range()->set_required_bytes(32 * kMi);
  ASSERT_TRUE(Call(&Controller::ControllerExpandVolume, expand).ok());
  EXPECT_EQ(SizeAt(Staging(id)), 32 * kMi);
  EXPECT_TRUE(WriteMiB(Staging(id) + "/file", 16));
}

TEST_P(DirectoryQuotaTest, ACopyCountsForItself) {
  const std::string id = Create(Request("a", 32 * kMi));
  ASSERT_TRUE(WriteMiB(Directory(id) + "/file", 16));
  v1::CreateVolumeRequest clone = Request("b", 32 * kMi);
  clone.mutable_volume_content_source()->mutable_volume()->set_volume_id(id);
  const std::string copy = Create(clone);
  Stage(copy);
  EXPECT_FALSE(WriteMiB(Staging(copy) + "/more", 20));
  EXPECT_TRUE(WriteMiB(Staging(copy) + "/more", 8));
  Unstage(copy);
  DeleteVolume(copy);
  DeleteVolume(id);
  EXPECT_THAT(Files("volumes"), IsEmpty());
}

}  // namespace
}  // namespace keelson::csi::local
