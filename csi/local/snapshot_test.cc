// Snapshots, volumes from them, and clones.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include "csi/local/testing/driver_fixture.h"
#include "lib/base/file.h"

namespace keelson::csi::local {
namespace {

using grpc::StatusCode;
using testing::IsEmpty;
using Controller = v1::Controller::Stub;

class SnapshotTest : public DriverFixture {
 protected:
  void SetUp() override {
    DriverFixture::SetUp();
    Start();
  }
  Answer<v1::CreateSnapshotResponse> Create(const std::string& name, const std::string& volume) {
    v1::CreateSnapshotRequest request;
    request.set_name(name);
    request.set_source_volume_id(volume);
    return Call(&Controller::CreateSnapshot, request);
  }
  Answer<v1::ListSnapshotsResponse> List(const std::string& snapshot, const std::string& volume = "",
                                         int most = 0, const std::string& token = "") {
    v1::ListSnapshotsRequest request;
    request.set_snapshot_id(snapshot);
    request.set_source_volume_id(volume);
    request.set_max_entries(most);
    request.set_starting_token(token);
    return Call(&Controller::ListSnapshots, request);
  }
  std::string Restore(const std::string& name, const std::string& snapshot, int64_t bytes,
                      const std::string& type = "") {
    v1::CreateVolumeRequest request = VolumeRequest(name, bytes, Mount(type));
    request.mutable_volume_content_source()->mutable_snapshot()->set_snapshot_id(snapshot);
    auto answer = Call(&Controller::CreateVolume, request);
    EXPECT_TRUE(answer.ok()) << answer.message;
    EXPECT_EQ(answer.reply.volume().content_source().snapshot().snapshot_id(), snapshot);
    return answer.reply.volume().volume_id();
  }
  std::string Content(const std::string& id, const std::string& type = "") {
    Stage(id, Mount(type));
    return ReadFile(Staging(id) + "/file").value_or("none");
  }
};

TEST_F(SnapshotTest, CreateRefusesAndRepeats) {
  EXPECT_EQ(Create("", "testId").code, StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(Create("name", "").code, StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(Create("name", "fake-vol-id").code, StatusCode::NOT_FOUND);
  const std::string a = CreateVolume("a", 8 * kMi), b = CreateVolume("b", 8 * kMi);
  auto first = Create(std::string(128, 's'), a);
  ASSERT_TRUE(first.ok()) << first.message;
  EXPECT_TRUE(first.reply.snapshot().ready_to_use());
  EXPECT_EQ(first.reply.snapshot().size_bytes(), 8 * kMi);
  EXPECT_EQ(first.reply.snapshot().source_volume_id(), a);
  EXPECT_GT(first.reply.snapshot().creation_time().seconds(), 0);
  EXPECT_EQ(Create(std::string(128, 's'), a).reply.SerializeAsString(), first.reply.SerializeAsString());
  EXPECT_EQ(Create(std::string(128, 's'), b).code, StatusCode::ALREADY_EXISTS);
  v1::CreateSnapshotRequest request;
  request.set_name("other");
  request.set_source_volume_id(a);
  (*request.mutable_parameters())["unknown"] = "";
  EXPECT_EQ(Call(&Controller::CreateSnapshot, request).code, StatusCode::INVALID_ARGUMENT);
}

TEST_F(SnapshotTest, ListsByIdentityVolumeAndPage) {
  const std::string a = CreateVolume("a", 8 * kMi), b = CreateVolume("b", 8 * kMi);
  std::vector<std::string> snapshots;
  for (const char* name : {"1", "2", "3", "4"}) snapshots.push_back(CreateSnapshot(name, a));
  const std::string other = CreateSnapshot("5", b);
  EXPECT_EQ(List("").reply.entries_size(), 5);
  EXPECT_EQ(List(other).reply.entries_size(), 1);
  EXPECT_EQ(List("", b).reply.entries(0).snapshot().snapshot_id(), other);
  EXPECT_EQ(List("", a).reply.entries_size(), 4);
  EXPECT_EQ(List("none-exist-id").reply.entries_size(), 0);
  EXPECT_EQ(List("", "fake-vol-id").code, StatusCode::OK);
  auto page = List("", "", 2);
  EXPECT_EQ(page.reply.entries_size(), 2);
  page = List("", "", 0, page.reply.next_token());
  EXPECT_EQ(page.reply.entries_size(), 3);
  EXPECT_EQ(page.reply.next_token(), "");
  EXPECT_EQ(List("", "", 0, "invalid-token").code, StatusCode::ABORTED);
  v1::GetSnapshotRequest get;
  EXPECT_EQ(Call(&Controller::GetSnapshot, get).code, StatusCode::INVALID_ARGUMENT);
  get.set_snapshot_id("fake");
  EXPECT_EQ(Call(&Controller::GetSnapshot, get).code, StatusCode::NOT_FOUND);
  get.set_snapshot_id(other);
  EXPECT_EQ(Call(&Controller::GetSnapshot, get).reply.snapshot().source_volume_id(), b);
}

TEST_F(SnapshotTest, DeleteIsIdempotent) {
  EXPECT_EQ(Call(&Controller::DeleteSnapshot, v1::DeleteSnapshotRequest()).code,
            StatusCode::INVALID_ARGUMENT);
  DeleteSnapshot("reallyfakesnapshotid");
  const std::string id = CreateSnapshot("s", CreateVolume("a", 8 * kMi));
  DeleteSnapshot(id);
  DeleteSnapshot(id);
  EXPECT_THAT(Files("snapshots"), IsEmpty());
}

TEST_F(SnapshotTest, KeepsTheContentOfItsInstant) {
  for (const std::string type : {"ext4", "xfs"}) {
    const int64_t bytes = (type == "xfs" ? 300 : 32) * kMi;
    const std::string volume = CreateVolume("source-" + type, bytes, Mount(type));
    Stage(volume, Mount(type));
    // In the page cache only: the snapshot has to write it out.
    ASSERT_TRUE(WriteFile(Staging(volume) + "/file", "before"));
    const std::string snapshot = CreateSnapshot("snapshot-" + type, volume);
    // Not frozen any more.
    ASSERT_TRUE(WriteFile(Staging(volume) + "/file", "after"));
    const std::string same = Restore("same-" + type, snapshot, bytes, type);
    const std::string larger = Restore("larger-" + type, snapshot, 2 * bytes, type);
    // It outlives its volume, and volumes from it outlive the snapshot.
    Unstage(volume);
    DeleteVolume(volume);
    DeleteSnapshot(snapshot);
    EXPECT_EQ(Content(same, type), "before") << type;
    EXPECT_EQ(Content(larger, type), "before") << type;
    v1::NodeGetVolumeStatsRequest request;
    request.set_volume_id(larger);
    request.set_volume_path(Staging(larger));
    auto stats = Call(&v1::Node::Stub::NodeGetVolumeStats, request);
    EXPECT_GT(stats.reply.usage(0).total(), bytes) << "its file system has grown";
    Unstage(same);
    Unstage(larger);
  }
  EXPECT_THAT(Files("frozen"), IsEmpty());
  EXPECT_THAT(Loops(), IsEmpty());
}

TEST_F(SnapshotTest, ARestoreIsNotSmaller) {
  const std::string snapshot = CreateSnapshot("s", CreateVolume("a", 16 * kMi));
  v1::CreateVolumeRequest request = VolumeRequest("b", 8 * kMi);
  request.mutable_volume_content_source()->mutable_snapshot()->set_snapshot_id(snapshot);
  auto answer = Call(&Controller::CreateVolume, request);
  ASSERT_TRUE(answer.ok()) << answer.message;
  EXPECT_EQ(answer.reply.volume().capacity_bytes(), 16 * kMi);
  request.set_name("c");
  request.mutable_capacity_range()->set_limit_bytes(8 * kMi);
  EXPECT_EQ(Call(&Controller::CreateVolume, request).code, StatusCode::OUT_OF_RANGE);
}

TEST_F(SnapshotTest, ACloneIsMountedBesideItsSource) {
  for (const std::string type : {"ext4", "xfs"}) {
    const int64_t bytes = (type == "xfs" ? 300 : 32) * kMi;
    const std::string source = CreateVolume("source-" + type, bytes, Mount(type));
    Stage(source, Mount(type));
    ASSERT_TRUE(WriteFile(Staging(source) + "/file", "cloned"));
    v1::CreateVolumeRequest request = VolumeRequest("clone-" + type, bytes, Mount(type));
    request.mutable_volume_content_source()->mutable_volume()->set_volume_id(source);
    auto answer = Call(&Controller::CreateVolume, request);
    ASSERT_TRUE(answer.ok()) << answer.message;
    const std::string clone = answer.reply.volume().volume_id();
    EXPECT_EQ(Call(&Controller::CreateVolume, request).reply.volume().volume_id(), clone);
    EXPECT_EQ(Content(clone, type), "cloned");
    Unstage(clone);
    Unstage(source);
  }
}

TEST_F(SnapshotTest, ADeviceInUseNeedsSharedBlocks) {
  const std::string volume = CreateVolume("a", 8 * kMi, Block());
  Stage(volume, Block());
  auto answer = Create("s", volume);
  // On a file system with shared blocks (XFS, Btrfs) it succeeds.
  if (!answer.ok()) {
    EXPECT_EQ(answer.code, StatusCode::FAILED_PRECONDITION);
    Unstage(volume);
    EXPECT_TRUE(Create("s", volume).ok());
  }
  EXPECT_THAT(Files("tmp"), IsEmpty());
}

TEST_F(SnapshotTest, AKilledDriversFreezeEnds) {
  const std::string volume = CreateVolume("a", 32 * kMi);
  Stage(volume);
  Kill();
  // As if it had been killed while it copied.
  ASSERT_TRUE(WriteFile(dir_ + "/data/frozen/" + volume, ""));
  ASSERT_EQ(::system(("fsfreeze -f " + Staging(volume)).c_str()), 0);
  Start();
  EXPECT_TRUE(WriteFile(Staging(volume) + "/file", "x"));
  EXPECT_THAT(Files("frozen"), IsEmpty());
}

}  // namespace
}  // namespace keelson::csi::local
