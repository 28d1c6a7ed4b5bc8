#include <gmock/gmock.h>

#include "csi/local/testing/driver_fixture.h"
#include "lib/base/file.h"

namespace keelson::csi::local {
namespace {

using grpc::StatusCode;
using testing::IsEmpty;
using Group = v1::GroupController::Stub;

class GroupSnapshotTest : public DriverFixture {
 protected:
  void SetUp() override {
    DriverFixture::SetUp();
    Start();
  }
  Answer<v1::CreateVolumeGroupSnapshotResponse> Create(const std::string& name,
                                                       const std::vector<std::string>& volumes) {
    v1::CreateVolumeGroupSnapshotRequest request;
    request.set_name(name);
    for (const std::string& volume : volumes) request.add_source_volume_ids(volume);
    return Call(&Group::CreateVolumeGroupSnapshot, request);
  }
  StatusCode Delete(const std::string& id, const std::vector<std::string>& snapshots = {}) {
    v1::DeleteVolumeGroupSnapshotRequest request;
    request.set_group_snapshot_id(id);
    for (const std::string& snapshot : snapshots) request.add_snapshot_ids(snapshot);
    return Call(&Group::DeleteVolumeGroupSnapshot, request).code;
  }
  Answer<v1::GetVolumeGroupSnapshotResponse> Get(const std::string& id) {
    v1::GetVolumeGroupSnapshotRequest request;
    request.set_group_snapshot_id(id);
    return Call(&Group::GetVolumeGroupSnapshot, request);
  }
  int Snapshots() {
    return Call(&v1::Controller::Stub::ListSnapshots, v1::ListSnapshotsRequest()).reply.entries_size();
  }
};

TEST_F(GroupSnapshotTest, Announced) {
  auto answer = Call(&Group::GroupControllerGetCapabilities, v1::GroupControllerGetCapabilitiesRequest());
  ASSERT_EQ(answer.reply.capabilities_size(), 1);
  EXPECT_EQ(answer.reply.capabilities(0).rpc().type(),
            v1::GroupControllerServiceCapability::RPC::CREATE_DELETE_GET_VOLUME_GROUP_SNAPSHOT);
}

TEST_F(GroupSnapshotTest, RefusesWhatIsMissing) {
  const std::string a = CreateVolume("a", 8 * kMi);
  EXPECT_EQ(Create("", {a}).code, StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(Create("g", {}).code, StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(Create("g", {a, a}).code, StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(Create("g", {a, "fake-vol-id"}).code, StatusCode::NOT_FOUND);
  EXPECT_EQ(Get("").code, StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(Get("fake-vol-id").code, StatusCode::NOT_FOUND);
  EXPECT_EQ(Delete(""), StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(Delete("fake-vol-id"), StatusCode::OK);
  EXPECT_THAT(Files("snapshots"), IsEmpty());
}

TEST_F(GroupSnapshotTest, IsMadeListedAndDeletedAsAWhole) {
  const std::string a = CreateVolume("a", 32 * kMi), b = CreateVolume("b", 32 * kMi),
                    c = CreateVolume("c", 8 * kMi);
  Stage(a);
  ASSERT_TRUE(WriteFile(Staging(a) + "/file", "before"));
  auto group = Create("g", {b, a});
  ASSERT_TRUE(group.ok()) << group.message;
  ASSERT_TRUE(WriteFile(Staging(a) + "/file", "after"));
  const v1::VolumeGroupSnapshot& made = group.reply.group_snapshot();
  ASSERT_EQ(made.snapshots_size(), 2);
  EXPECT_TRUE(made.ready_to_use());
  for (const v1::Snapshot& member : made.snapshots()) {
    EXPECT_EQ(member.group_snapshot_id(), made.group_snapshot_id());
    EXPECT_EQ(member.creation_time().seconds(), made.creation_time().seconds());
    EXPECT_TRUE(member.ready_to_use());
  }
  EXPECT_EQ(Create("g", {a, b}).reply.SerializeAsString(), group.reply.SerializeAsString());
  EXPECT_EQ(Create("g", {a, c}).code, StatusCode::ALREADY_EXISTS);
  EXPECT_EQ(Get(made.group_snapshot_id()).reply.group_snapshot().SerializeAsString(),
            made.SerializeAsString());
  EXPECT_EQ(Snapshots(), 2);

  v1::DeleteSnapshotRequest one;
  one.set_snapshot_id(made.snapshots(0).snapshot_id());
  EXPECT_EQ(Call(&v1::Controller::Stub::DeleteSnapshot, one).code, StatusCode::INVALID_ARGUMENT);

  const v1::Snapshot& of_a =
      made.snapshots(0).source_volume_id() == a ? made.snapshots(0) : made.snapshots(1);
  v1::CreateVolumeRequest restore = VolumeRequest("restored", 32 * kMi);
  restore.mutable_volume_content_source()->mutable_snapshot()->set_snapshot_id(of_a.snapshot_id());
  auto restored = Call(&v1::Controller::Stub::CreateVolume, restore);
  ASSERT_TRUE(restored.ok()) << restored.message;
  Stage(restored.reply.volume().volume_id());
  EXPECT_EQ(*ReadFile(Staging(restored.reply.volume().volume_id()) + "/file"), "before");

  EXPECT_EQ(Delete(made.group_snapshot_id(), {"another"}), StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(
      Delete(made.group_snapshot_id(), {made.snapshots(0).snapshot_id(), made.snapshots(1).snapshot_id()}),
      StatusCode::OK);
  EXPECT_EQ(Delete(made.group_snapshot_id()), StatusCode::OK);
  EXPECT_EQ(Snapshots(), 0);
  EXPECT_THAT(Files("snapshots"), IsEmpty());
  EXPECT_THAT(Files("groups"), IsEmpty());
}

TEST_F(GroupSnapshotTest, HalfOfOneGoesAtStart) {
  const std::string a = CreateVolume("a", 8 * kMi), b = CreateVolume("b", 8 * kMi);
  auto group = Create("g", {a, b});
  ASSERT_TRUE(group.ok()) << group.message;
  Kill();
  ASSERT_TRUE(
      RemoveFile(dir_ + "/data/groups/" + group.reply.group_snapshot().group_snapshot_id() + ".json"));
  Start();
  EXPECT_THAT(Files("snapshots"), IsEmpty());
  EXPECT_TRUE(Create("g", {a, b}).ok());
}

}  // namespace
}  // namespace keelson::csi::local
