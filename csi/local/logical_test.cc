// Volumes of type lvm: with the real LVM in tests/vm, elsewhere with the fake that keeps its contract (host/lvm_test.cc).
#include <fcntl.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include "csi/local/testing/driver_fixture.h"
#include "csi/local/testing/lvm_host.h"
#include "lib/base/file.h"
#include "lib/linux/mount.h"

namespace keelson::csi::local {
namespace {

using grpc::StatusCode;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Controller = v1::Controller::Stub;
using Node = v1::Node::Stub;

const std::vector<std::string> kFlags = {"--lvm-volume-group=group", "--lvm-thin-pool=pool"};

class LogicalTest : public DriverFixture {
 protected:
  void SetUp() override {
    DriverFixture::SetUp();
    host_.emplace(dir_);
  }
  void TearDown() override {
    for (const std::string& point : Mounts()) (void)linux::Unmount(point);
    if (driver_) Stop();
    for (const std::string& name : host_->Names()) host_->Run({"lvremove", "--yes", "group/" + name});
    host_.reset();
    DriverFixture::TearDown();
  }
  static v1::CreateVolumeRequest Request(const std::string& name, int64_t bytes,
                                         const v1::VolumeCapability& capability = Mount()) {
    v1::CreateVolumeRequest request = VolumeRequest(name, bytes, capability);
    (*request.mutable_parameters())["type"] = "lvm";
    return request;
  }
  std::string Create(const v1::CreateVolumeRequest& request) {
    auto answer = Call(&Controller::CreateVolume, request);
    EXPECT_TRUE(answer.ok()) << answer.message;
    return answer.reply.volume().volume_id();
  }
  std::string Copy(const std::string& name, int64_t bytes, const std::string& snapshot,
                   const v1::VolumeCapability& capability = Mount()) {
    v1::CreateVolumeRequest request = Request(name, bytes, capability);
    request.mutable_volume_content_source()->mutable_snapshot()->set_snapshot_id(snapshot);
    return Create(request);
  }
  void Use(const std::string& id, const v1::VolumeCapability& capability = Mount()) {
    Stage(id, capability);
    Publish(id, capability, id);
  }
  void Leave(const std::string& id) {
    Unpublish(id, id);
    Unstage(id);
  }
  std::string File(const std::string& id) const { return Target(id) + "/file"; }
  void WriteDevice(const std::string& path, off_t at, const std::string& text) {
    auto fd = OpenFile(path, O_RDWR);
    ASSERT_TRUE(fd) << fd.error().message();
    ASSERT_EQ(::pwrite(fd->get(), text.data(), text.size(), at), static_cast<ssize_t>(text.size()));
    ASSERT_EQ(::fsync(fd->get()), 0);
  }
  std::string ReadDevice(const std::string& path, off_t at, size_t size) {
    auto fd = OpenFile(path, O_RDONLY);
    EXPECT_TRUE(fd) << fd.error().message();
    std::string text(size, '?');
    if (fd) {
      EXPECT_EQ(::pread(fd->get(), text.data(), size, at), static_cast<ssize_t>(size));
    }
    return text;
  }
  Answer<v1::CreateVolumeGroupSnapshotResponse> TakeGroup(const std::string& name,
                                                          const std::vector<std::string>& volumes) {
    v1::CreateVolumeGroupSnapshotRequest request;
    request.set_name(name);
    for (const std::string& volume : volumes) request.add_source_volume_ids(volume);
    return Call(&v1::GroupController::Stub::CreateVolumeGroupSnapshot, request);
  }
  int64_t Available() {
    v1::GetCapacityRequest request;
    (*request.mutable_parameters())["type"] = "lvm";
    return Call(&Controller::GetCapacity, request).reply.available_capacity();
  }
  void Mark(const std::string& id, const char* option, const std::string& mark) {
    host_->Run({"lvchange", "--yes", option, "keelson.csi.local/" + mark, "group/" + id});
  }
  std::string Device(const std::string& id) {
    return Lvm({kTestGroup, kTestPool, kTestTag}).Volume(id)->device;
  }

  std::optional<LvmHost> host_;
};

TEST_F(LogicalTest, AFileSystemLivesOnALogicalVolume) {
  Start(kFlags);
  for (const char* type : {"ext4", "xfs"}) {
    SCOPED_TRACE(type);
    const std::string id = Create(Request(type, 300 * kMi, Mount(type)));
    EXPECT_THAT(host_->Names(), ElementsAre(id));
    Use(id, Mount(type));
    ASSERT_TRUE(WriteFile(File(id), "kept"));
    Use(id, Mount(type));  // again, as a kubelet after its restart
    v1::DeleteVolumeRequest request;
    request.set_volume_id(id);
    EXPECT_EQ(Call(&Controller::DeleteVolume, request).code, StatusCode::FAILED_PRECONDITION);
    Leave(id);
    Use(id, Mount(type));
    EXPECT_EQ(ReadFile(File(id)).value_or(""), "kept");
    Leave(id);
    DeleteVolume(id);
    DeleteVolume(id);
    EXPECT_THAT(host_->Names(), IsEmpty());
    EXPECT_THAT(Files("volumes"), IsEmpty());
  }
}

TEST_F(LogicalTest, ADeviceIsGivenToOneUse) {
  Start(kFlags);
  const std::string id = Create(Request("raw", 16 * kMi, Block()));
  Use(id, Block());
  WriteDevice(Target(id), 4096, "a word");
  EXPECT_EQ(Call(&Node::NodeStageVolume, StageRequest(id)).code, StatusCode::FAILED_PRECONDITION)
      << "it is in use as a device";
  Leave(id);
  EXPECT_EQ(Call(&Node::NodeStageVolume, StageRequest(id)).code, StatusCode::FAILED_PRECONDITION)
      << "it holds data that is no file system";
  v1::VolumeCapability reader = Block();
  reader.mutable_access_mode()->set_mode(v1::VolumeCapability::AccessMode::SINGLE_NODE_READER_ONLY);
  Use(id, reader);
  EXPECT_EQ(ReadDevice(Target(id), 4096, 6), "a word");
  {
    const auto writable = OpenFile(Target(id), O_RDWR);
    EXPECT_FALSE(writable && ::pwrite(writable->get(), "x", 1, 0) == 1) << "nobody writes to it";
  }
  Leave(id);
  Use(id, Block());
  WriteDevice(Target(id), 4096, "others");
  Leave(id);
}

TEST_F(LogicalTest, AVolumeGrowsUnderItsFileSystem) {
  Start(kFlags);
  const std::string id = Create(Request("growing", 300 * kMi, Mount("xfs")));
  Use(id, Mount("xfs"));
  v1::ControllerExpandVolumeRequest expand;
  expand.set_volume_id(id);
  expand.mutable_capacity_range()->set_required_bytes(398 * kMi);
  auto expanded = Call(&Controller::ControllerExpandVolume, expand);
  ASSERT_TRUE(expanded.ok()) << expanded.message;
  EXPECT_EQ(expanded.reply.capacity_bytes(), 400 * kMi) << "a multiple of the extent";
  v1::NodeExpandVolumeRequest grow;
  grow.set_volume_id(id);
  grow.set_volume_path(Target(id));
  grow.mutable_capacity_range()->set_required_bytes(398 * kMi);
  EXPECT_TRUE(Call(&Node::NodeExpandVolume, grow).ok());
  v1::NodeGetVolumeStatsRequest stats;
  stats.set_volume_id(id);
  stats.set_volume_path(Target(id));
  auto told = Call(&Node::NodeGetVolumeStats, stats);
  ASSERT_GT(told.reply.usage_size(), 0);
  EXPECT_GT(told.reply.usage(0).total(), 310 * kMi);
  EXPECT_FALSE(told.reply.volume_condition().abnormal()) << told.reply.volume_condition().message();
  Leave(id);
  expand.mutable_capacity_range()->set_limit_bytes(401 * kMi);
  expand.mutable_capacity_range()->set_required_bytes(401 * kMi);
  EXPECT_EQ(Call(&Controller::ControllerExpandVolume, expand).code, StatusCode::OUT_OF_RANGE)
      << "no multiple of the extent fits";
}

TEST_F(LogicalTest, SnapshotsAndClonesStandOnTheirOwn) {
  Start(kFlags);
  const std::string id = Create(Request("source", 300 * kMi, Mount("xfs")));
  Use(id, Mount("xfs"));
  ASSERT_TRUE(WriteFile(File(id), "first"));
  const std::string snapshot = CreateSnapshot("snap", id);
  EXPECT_EQ(CreateSnapshot("snap", id), snapshot);
  ASSERT_TRUE(WriteFile(File(id), "later"));
  v1::CreateVolumeRequest clone = Request("clone", 300 * kMi, Mount("xfs"));
  clone.mutable_volume_content_source()->mutable_volume()->set_volume_id(id);
  const std::string cloned = Create(clone);
  const std::string restored = Copy("restored", 320 * kMi, snapshot, Mount("xfs"));
  // All of them on the node at once, with one UUID.
  Use(cloned, Mount("xfs"));
  Use(restored, Mount("xfs"));
  EXPECT_EQ(ReadFile(File(cloned)).value_or(""), "later");
  EXPECT_EQ(ReadFile(File(restored)).value_or(""), "first");
  for (const std::string& one : {id, cloned, restored}) Leave(one);
  DeleteVolume(id);
  DeleteSnapshot(snapshot);
  Use(restored, Mount("xfs"));
  EXPECT_EQ(ReadFile(File(restored)).value_or(""), "first");
  Leave(restored);
  DeleteVolume(cloned);
  DeleteVolume(restored);
  EXPECT_THAT(host_->Names(), IsEmpty());
  EXPECT_EQ(Call(&Controller::CreateVolume, VolumeRequest("x", 300 * kMi)).code, StatusCode::OK);
}

TEST_F(LogicalTest, WhatALogicalVolumeIsNotIsRefused) {
  Start(kFlags);
  const std::string id = Create(Request("a", 16 * kMi));
  EXPECT_EQ(Call(&Controller::CreateVolume, VolumeRequest("a", 16 * kMi)).code, StatusCode::ALREADY_EXISTS);
  v1::CreateVolumeRequest thick = Request("b", 16 * kMi);
  (*thick.mutable_parameters())["provisioning"] = "thick";
  EXPECT_EQ(Call(&Controller::CreateVolume, thick).code, StatusCode::INVALID_ARGUMENT);
  v1::CreateVolumeRequest other = VolumeRequest("c", 16 * kMi);
  other.mutable_volume_content_source()->mutable_volume()->set_volume_id(id);
  EXPECT_EQ(Call(&Controller::CreateVolume, other).code, StatusCode::INVALID_ARGUMENT) << "of another type";
  EXPECT_THAT(host_->Names(), ElementsAre(id));
}

TEST_F(LogicalTest, AGroupIsOfOneInstant) {
  Start(kFlags);
  const std::string used = Create(Request("used", 300 * kMi, Mount("xfs"))),
                    idle = Create(Request("idle", 16 * kMi)), raw = Create(Request("raw", 16 * kMi, Block())),
                    file = CreateVolume("file", 16 * kMi);
  Use(used, Mount("xfs"));
  ASSERT_TRUE(WriteFile(File(used), "before"));
  auto group = TakeGroup("g", {used, idle, raw});
  ASSERT_TRUE(group.ok()) << group.message;
  ASSERT_TRUE(WriteFile(File(used), "after"));
  EXPECT_EQ(TakeGroup("g", {used, idle, raw}).reply.SerializeAsString(), group.reply.SerializeAsString());
  const v1::VolumeGroupSnapshot& made = group.reply.group_snapshot();
  ASSERT_EQ(made.snapshots_size(), 3);
  EXPECT_THAT(host_->Names(), testing::SizeIs(6));
  for (const v1::Snapshot& member : made.snapshots()) {
    EXPECT_EQ(member.group_snapshot_id(), made.group_snapshot_id());
    if (member.source_volume_id() != used) continue;
    const std::string restored = Copy("restored", 300 * kMi, member.snapshot_id(), Mount("xfs"));
    Use(restored, Mount("xfs"));
    EXPECT_EQ(ReadFile(File(restored)).value_or(""), "before");
    Leave(restored);
    DeleteVolume(restored);
  }
  // Half of one: a driver that was killed before the group's record.
  Kill();
  ASSERT_TRUE(RemoveFile(dir_ + "/data/groups/" + made.group_snapshot_id() + ".json"));
  Start(kFlags);
  EXPECT_THAT(host_->Names(), testing::UnorderedElementsAre(used, idle, raw));
  EXPECT_THAT(Files("snapshots"), IsEmpty());

  // With files beside it. Writers of a device cannot be held up.
  EXPECT_TRUE(TakeGroup("g", {used, file}).ok());
  Use(raw, Block());
  EXPECT_EQ(TakeGroup("h", {used, raw}).code, StatusCode::FAILED_PRECONDITION);
  Leave(raw);
  v1::DeleteVolumeGroupSnapshotRequest remove;
  remove.set_group_snapshot_id(made.group_snapshot_id());
  EXPECT_EQ(Call(&v1::GroupController::Stub::DeleteVolumeGroupSnapshot, remove).code, StatusCode::OK);
  EXPECT_THAT(host_->Names(), testing::UnorderedElementsAre(used, idle, raw));
  EXPECT_THAT(Files("snapshots"), IsEmpty());
  Leave(used);
}

// Each is held up at the freeze of the other: the kernel's own nesting, or none.
TEST_F(LogicalTest, TwoMountedVolumesAreOfOneInstantOrRefused) {
  Start(kFlags);
  const std::string a = Create(Request("a", 16 * kMi)), b = Create(Request("b", 16 * kMi));
  for (const std::string& id : {a, b}) Use(id);
  const auto group = TakeGroup("g", {a, b});
  if (group.ok()) {
    EXPECT_THAT(host_->Names(), testing::SizeIs(4));
  } else {
    EXPECT_EQ(group.code, StatusCode::FAILED_PRECONDITION) << group.message;
    EXPECT_THAT(group.message, HasSubstr("before Linux 6.8"));
    EXPECT_THAT(host_->Names(), testing::UnorderedElementsAre(a, b));
    EXPECT_THAT(Files("snapshots"), IsEmpty());
  }
  EXPECT_THAT(Files("frozen"), IsEmpty());
  for (const std::string& id : {a, b}) {
    EXPECT_TRUE(WriteFile(File(id), "goes on"));
    Leave(id);
  }
}

TEST_F(LogicalTest, AnInlineVolumeIsALogicalVolume) {
  Start(kFlags);
  const std::string id = "csi-" + std::string(64, '1');
  v1::NodePublishVolumeRequest request = PublishRequest(id);
  (*request.mutable_volume_context())["csi.storage.k8s.io/ephemeral"] = "true";
  (*request.mutable_volume_context())["type"] = "lvm";
  (*request.mutable_volume_context())["size"] = "6Mi";
  for (int i = 0; i < 2; ++i) {
    const auto published = Call(&Node::NodePublishVolume, request);
    ASSERT_TRUE(published.ok()) << published.message;
  }
  EXPECT_THAT(host_->Names(), testing::SizeIs(1));
  EXPECT_TRUE(WriteFile(Target("target") + "/file", "x"));
  Unpublish(id);
  EXPECT_THAT(host_->Names(), IsEmpty());
  EXPECT_THAT(Files("volumes"), IsEmpty());
}

TEST_F(LogicalTest, ConditionsOfAListAreOfOneLook) {
  Start(kFlags);
  const std::string kept = Create(Request("a", 16 * kMi)), lost = Create(Request("b", 16 * kMi));
  host_->Run({"lvremove", "--yes", "group/" + lost});
  const auto list = Call(&Controller::ListVolumes, v1::ListVolumesRequest());
  ASSERT_EQ(list.reply.entries_size(), 2);
  for (const auto& entry : list.reply.entries()) {
    EXPECT_EQ(entry.status().volume_condition().abnormal(), entry.volume().volume_id() == lost)
        << entry.status().volume_condition().message();
  }
}

TEST_F(LogicalTest, WithoutAPoolThereIsNone) {
  Start();
  EXPECT_EQ(Available(), 0);
  auto answer = Call(&Controller::CreateVolume, Request("a", 16 * kMi));
  EXPECT_EQ(answer.code, StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(answer.message, HasSubstr("--lvm-volume-group"));
}

TEST_F(LogicalTest, ThePoolsSpaceIsGivenOnce) {
  Start({kFlags[0], kFlags[1], "--overprovision-ratio=1"});
  const int64_t before = Available();
  EXPECT_GT(before, 1000 * kMi);
  const std::string id = Create(Request("a", 600 * kMi));
  EXPECT_EQ(Available(), before - 600 * kMi);
  EXPECT_EQ(Call(&Controller::CreateVolume, Request("b", 600 * kMi)).code, StatusCode::RESOURCE_EXHAUSTED);
  v1::ControllerExpandVolumeRequest expand;
  expand.set_volume_id(id);
  expand.mutable_capacity_range()->set_required_bytes(1200 * kMi);
  EXPECT_EQ(Call(&Controller::ControllerExpandVolume, expand).code, StatusCode::OUT_OF_RANGE);
  DeleteVolume(id);
  EXPECT_EQ(Available(), before);
  Create(Request("b", 600 * kMi));
}

TEST_F(LogicalTest, AHalfMadeFileSystemIsMadeAgain) {
  Start(kFlags);
  const std::string id = Create(Request("a", 16 * kMi)), other = Create(Request("b", 16 * kMi));
  for (const std::string& one : {id, other}) WriteDevice(Device(one), 1 << 20, "part of a file system");
  Mark(id, "--addtag", "formatting");
  Use(id);
  ASSERT_TRUE(WriteFile(File(id), "kept"));
  Leave(id);
  Use(id);
  EXPECT_EQ(ReadFile(File(id)).value_or(""), "kept") << "once only";
  Leave(id);
  EXPECT_EQ(Call(&Node::NodeStageVolume, StageRequest(other)).code, StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(ReadDevice(Device(other), 1 << 20, 4), "part");
}

TEST_F(LogicalTest, WhatIsNotTheDriversStays) {
  Start(kFlags);
  const std::string id = Create(Request("a", 16 * kMi)), lost = Create(Request("b", 16 * kMi));
  Stop();
  // As after a driver that was killed while it made `half`; `lost` has lost its record, and is kept.
  ASSERT_TRUE(RemoveFile(dir_ + "/data/volumes/" + lost + ".json"));
  const auto create = [&](const std::string& name, const std::string& tag) {
    std::vector<std::string> arguments = {"lvcreate", "--yes",  "--type", "thin",          "--thinpool",
                                          kTestPool,  "--name", name,     "--virtualsize", "4194304b"};
    if (!tag.empty()) {
      arguments.insert(arguments.end(), {"--addtag", tag, "--addtag", "keelson.csi.local/incomplete"});
    }
    arguments.emplace_back(kTestGroup);
    host_->Run(arguments);
  };
  create("half", kTestTag);
  create("theirs", "");
  create("others", "keelson.csi.local/local.csi.keelson.dev/node2");
  Mark(id, "--addtag", "incomplete");
  Start(kFlags);
  EXPECT_THAT(host_->Names(), testing::UnorderedElementsAre(id, lost, "theirs", "others"));
  EXPECT_THAT(Log(), HasSubstr("has no record; it stays"));
  EXPECT_EQ(Call(&Controller::CreateVolume, Request("b", 16 * kMi)).code, StatusCode::FAILED_PRECONDITION);
  DeleteVolume(lost);
  EXPECT_THAT(host_->Names(), testing::Contains(lost));
  DeleteVolume(id);
  EXPECT_THAT(host_->Names(), testing::UnorderedElementsAre(lost, "theirs", "others"));
}

TEST_F(LogicalTest, APoolThatDoesNotZeroIsRefused) {
  Start(kFlags);
  host_->StopZeroing();
  EXPECT_EQ(Call(&Controller::CreateVolume, Request("a", 16 * kMi)).code, StatusCode::FAILED_PRECONDITION);
}

// Kills the driver after each command that it has LVM do. (The real LVM does not know the driver.)
class LogicalKillTest : public LogicalTest {
 protected:
  void KillAtEachCommand(const std::function<void()>& prepare, const std::function<StatusCode()>& call) {
    for (int commands = 1;; ++commands) {
      SCOPED_TRACE("killed after " + std::to_string(commands) + " commands");
      ASSERT_LT(commands, 30);
      Start(kFlags);
      prepare();
      host_->KillDriverAfter(commands);
      const StatusCode code = call();
      if (code == StatusCode::OK) {
        host_->KillDriverAfter(0);
        EXPECT_GT(commands, 2);
        return;
      }
      ASSERT_EQ(code, StatusCode::UNAVAILABLE) << Log();
      ASSERT_TRUE(driver_->Wait({}));
      driver_.reset();
      Start(kFlags);
      ASSERT_EQ(call(), StatusCode::OK) << Log();
      if (!id_.empty()) DeleteVolume(id_);
      EXPECT_THAT(host_->Names(), IsEmpty());
      EXPECT_THAT(Files("volumes"), IsEmpty());
      Stop();
    }
  }
  StatusCode TryCreate() {
    auto answer = Call(&Controller::CreateVolume, Request("a", 16 * kMi));
    id_ = answer.reply.volume().volume_id();
    return answer.code;
  }
  std::string id_;
};

TEST_F(LogicalKillTest, WhileItCreates) {
  KillAtEachCommand([] {}, [&] { return TryCreate(); });
}

TEST_F(LogicalKillTest, WhileItFormats) {
  KillAtEachCommand([&] { ASSERT_EQ(TryCreate(), StatusCode::OK); },
                    [&] {
                      const StatusCode code = Call(&Node::NodeStageVolume, StageRequest(id_)).code;
                      if (code == StatusCode::OK) {
                        host_->KillDriverAfter(0);
                        Unstage(id_);
                      }
                      return code;
                    });
}

TEST_F(LogicalKillTest, WhileItTakesAGroup) {
  KillAtEachCommand([&] { ASSERT_EQ(TryCreate(), StatusCode::OK); },
                    [&] {
                      const auto group = TakeGroup("g", {id_});
                      if (!group.ok()) return group.code;
                      host_->KillDriverAfter(0);
                      v1::DeleteVolumeGroupSnapshotRequest remove;
                      remove.set_group_snapshot_id(group.reply.group_snapshot().group_snapshot_id());
                      return Call(&v1::GroupController::Stub::DeleteVolumeGroupSnapshot, remove).code;
                    });
}

TEST_F(LogicalKillTest, WhileItDeletes) {
  KillAtEachCommand([&] { ASSERT_EQ(TryCreate(), StatusCode::OK); },
                    [&] {
                      v1::DeleteVolumeRequest request;
                      request.set_volume_id(id_);
                      return Call(&Controller::DeleteVolume, request).code;
                    });
}

}  // namespace
}  // namespace keelson::csi::local
