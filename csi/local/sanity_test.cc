// What kubernetes-csi's csi-sanity asks of a driver, with its sizes, paths and clean-up, for each kind of volume.
#include <gmock/gmock.h>

#include <functional>

#include "csi/local/testing/driver_fixture.h"
#include "csi/local/testing/sanity_kinds.h"
#include "lib/base/file.h"

namespace keelson::csi::local {
namespace {

using grpc::StatusCode;
using testing::AnyOf;
using testing::IsEmpty;
using Controller = v1::Controller::Stub;
using Group = v1::GroupController::Stub;
using Identity = v1::Identity::Stub;
using Node = v1::Node::Stub;

const char kFakeVolume[] = "fake-vol-id-2f2c0b1e", kFakePath[] = "some/path";

class SanityTest : public DriverFixture, public testing::WithParamInterface<VolumeKind> {
 protected:
  void SetUp() override {
    DriverFixture::SetUp();
    disk_ = GetParam().disk(dir_);
    staging_ = dir_ + "/csi-staging";
    target_ = dir_ + "/csi-mount/target";
    ASSERT_TRUE(MakeDirs(staging_));
    ASSERT_TRUE(MakeDirs(dir_ + "/csi-mount"));
    Start(GetParam().flags);
  }
  // Also volumes that are not published, not staged, or deleted already: these calls may say NOT_FOUND, and no more.
  void TearDown() override {
    for (auto undo = undo_.rbegin(); undo != undo_.rend(); ++undo) (*undo)();
    EXPECT_FALSE(PathExists(target_));
    EXPECT_THAT(Mounts(), IsEmpty());
    // The disk of a volume group may be one.
    if (!disk_) {
      EXPECT_THAT(Loops(), IsEmpty());
    }
    for (const char* folder : {"volumes", "snapshots", "groups", "tmp"}) {
      EXPECT_THAT(Files(folder), IsEmpty()) << folder;
    }
    Stop();
    disk_.reset();
    DriverFixture::TearDown();
  }

  static int64_t Size() { return GetParam().size; }
  static int64_t Grown() { return Size() + Size() / 4; }
  static v1::VolumeCapability Capability() { return GetParam().block ? Block() : Mount(); }
  static v1::CreateVolumeRequest Request(const std::string& name) {
    v1::CreateVolumeRequest request;
    request.set_name(name);
    *request.add_volume_capabilities() = Capability();
    (*request.mutable_secrets())["user"] = "secret";
    if (!GetParam().type.empty()) (*request.mutable_parameters())["type"] = GetParam().type;
    return request;
  }
  static v1::CreateVolumeRequest Sized(const std::string& name, int64_t bytes) {
    v1::CreateVolumeRequest request = Request(name);
    request.mutable_capacity_range()->set_required_bytes(bytes);
    request.mutable_capacity_range()->set_limit_bytes(bytes);
    return request;
  }
  static v1::CreateSnapshotRequest SnapshotRequest(const std::string& name, const std::string& volume) {
    v1::CreateSnapshotRequest request;
    request.set_name(name);
    request.set_source_volume_id(volume);
    (*request.mutable_secrets())["user"] = "secret";
    return request;
  }

  v1::Volume Create(const v1::CreateVolumeRequest& request) {
    auto answer = Call(&Controller::CreateVolume, request);
    EXPECT_TRUE(answer.ok()) << answer.message;
    const std::string id = answer.reply.volume().volume_id();
    EXPECT_NE(id, "");
    undo_.emplace_back([this, id] {
      EXPECT_THAT(UnpublishCode(id), AnyOf(StatusCode::OK, StatusCode::NOT_FOUND));
      EXPECT_THAT(UnstageCode(id), AnyOf(StatusCode::OK, StatusCode::NOT_FOUND));
      DeleteVolume(id);
    });
    return answer.reply.volume();
  }
  std::string Volume(const std::string& name) { return Create(Sized(name, Size())).volume_id(); }
  v1::Snapshot Snapshot(const std::string& name, const std::string& volume) {
    auto answer = Call(&Controller::CreateSnapshot, SnapshotRequest(name, volume));
    EXPECT_TRUE(answer.ok()) << answer.message;
    const v1::Snapshot& snapshot = answer.reply.snapshot();
    EXPECT_NE(snapshot.snapshot_id(), "");
    EXPECT_EQ(snapshot.source_volume_id(), volume);
    EXPECT_NE(snapshot.creation_time().seconds(), 0);
    EXPECT_TRUE(snapshot.ready_to_use());
    undo_.emplace_back([this, id = snapshot.snapshot_id()] { DeleteSnapshot(id); });
    return snapshot;
  }

  v1::NodeStageVolumeRequest StageOf(const std::string& id) const {
    v1::NodeStageVolumeRequest request;
    request.set_volume_id(id);
    request.set_staging_target_path(staging_);
    *request.mutable_volume_capability() = Capability();
    (*request.mutable_publish_context())["device"] = "/dev/mock";
    (*request.mutable_secrets())["user"] = "secret";
    return request;
  }
  v1::NodePublishVolumeRequest PublishOf(const std::string& id) const {
    v1::NodePublishVolumeRequest request;
    request.set_volume_id(id);
    request.set_staging_target_path(staging_);
    request.set_target_path(target_);
    *request.mutable_volume_capability() = Capability();
    (*request.mutable_secrets())["user"] = "secret";
    return request;
  }
  void UseVolume(const std::string& id, int times = 1) {
    for (int i = 0; i < times; ++i) {
      auto staged = Call(&Node::NodeStageVolume, StageOf(id));
      ASSERT_TRUE(staged.ok()) << staged.message;
    }
    for (int i = 0; i < times; ++i) {
      auto published = Call(&Node::NodePublishVolume, PublishOf(id));
      ASSERT_TRUE(published.ok()) << published.message;
    }
    EXPECT_TRUE(PathExists(target_));
  }
  StatusCode UnpublishCode(const std::string& id) {
    v1::NodeUnpublishVolumeRequest request;
    request.set_volume_id(id);
    request.set_target_path(target_);
    return Call(&Node::NodeUnpublishVolume, request).code;
  }
  StatusCode UnstageCode(const std::string& id) {
    v1::NodeUnstageVolumeRequest request;
    request.set_volume_id(id);
    request.set_staging_target_path(staging_);
    return Call(&Node::NodeUnstageVolume, request).code;
  }
  Answer<v1::NodeGetVolumeStatsResponse> Stats(const std::string& id, const std::string& path) {
    v1::NodeGetVolumeStatsRequest request;
    request.set_volume_id(id);
    request.set_volume_path(path);
    return Call(&Node::NodeGetVolumeStats, request);
  }
  StatusCode NodeExpandCode(const std::string& id, const std::string& path) {
    v1::NodeExpandVolumeRequest request;
    request.set_volume_id(id);
    request.set_volume_path(path);
    if (path == target_) request.mutable_capacity_range()->set_required_bytes(Grown());
    return Call(&Node::NodeExpandVolume, request).code;
  }
  Answer<v1::ControllerExpandVolumeResponse> Expand(const std::string& id, int64_t bytes) {
    v1::ControllerExpandVolumeRequest request;
    request.set_volume_id(id);
    if (bytes != 0) request.mutable_capacity_range()->set_required_bytes(bytes);
    return Call(&Controller::ControllerExpandVolume, request);
  }
  std::vector<std::string> Volumes() {
    auto answer = Call(&Controller::ListVolumes, v1::ListVolumesRequest());
    EXPECT_TRUE(answer.ok()) << answer.message;
    std::vector<std::string> ids;
    for (const auto& entry : answer.reply.entries()) ids.push_back(entry.volume().volume_id());
    return ids;
  }
  std::vector<std::string> Snapshots(const std::string& snapshot = "", const std::string& volume = "") {
    v1::ListSnapshotsRequest request;
    request.set_snapshot_id(snapshot);
    request.set_source_volume_id(volume);
    (*request.mutable_secrets())["user"] = "secret";
    auto answer = Call(&Controller::ListSnapshots, request);
    EXPECT_TRUE(answer.ok()) << answer.message;
    std::vector<std::string> ids;
    for (const auto& entry : answer.reply.entries()) ids.push_back(entry.snapshot().snapshot_id());
    return ids;
  }

  std::shared_ptr<void> disk_;
  std::string staging_, target_;
  std::vector<std::function<void()>> undo_;
};

INSTANTIATE_TEST_SUITE_P(Kinds, SanityTest, testing::ValuesIn(SanityKinds()),
                         [](const auto& kind) { return kind.param.name; });

TEST_P(SanityTest, Identity) {
  auto info = Call(&Identity::GetPluginInfo, v1::GetPluginInfoRequest());
  ASSERT_TRUE(info.ok()) << info.message;
  EXPECT_THAT(info.reply.name(), testing::MatchesRegex("[a-zA-Z][-._A-Za-z0-9]*[a-zA-Z]"));
  EXPECT_LE(info.reply.name().size(), 63u);
  EXPECT_TRUE(Call(&Identity::Probe, v1::ProbeRequest()).ok());
  using Service = v1::PluginCapability::Service;
  using Expansion = v1::PluginCapability::VolumeExpansion;
  auto capabilities = Call(&Identity::GetPluginCapabilities, v1::GetPluginCapabilitiesRequest());
  for (const auto& one : capabilities.reply.capabilities()) {
    if (one.has_service()) {
      EXPECT_THAT(one.service().type(),
                  AnyOf(Service::CONTROLLER_SERVICE, Service::VOLUME_ACCESSIBILITY_CONSTRAINTS,
                        Service::GROUP_CONTROLLER_SERVICE));
    } else {
      ASSERT_TRUE(one.has_volume_expansion());
      EXPECT_THAT(one.volume_expansion().type(), AnyOf(Expansion::ONLINE, Expansion::OFFLINE));
    }
  }
  auto node = Call(&Node::NodeGetInfo, v1::NodeGetInfoRequest());
  EXPECT_NE(node.reply.node_id(), "");
  EXPECT_GE(node.reply.max_volumes_per_node(), 0);
  EXPECT_TRUE(node.reply.has_accessible_topology());
  EXPECT_TRUE(Call(&Controller::GetCapacity, v1::GetCapacityRequest()).ok());
}

TEST_P(SanityTest, VolumesAreListedWhileTheyExist) {
  v1::ListVolumesRequest wrong;
  wrong.set_starting_token("invalid-token");
  EXPECT_EQ(Call(&Controller::ListVolumes, wrong).code, StatusCode::ABORTED);
  const std::string id = Create(Request("sanity")).volume_id();  // no capacity asked for
  EXPECT_THAT(Volumes(), testing::ElementsAre(id));
  DeleteVolume(id);
  EXPECT_THAT(Volumes(), IsEmpty());
}

TEST_P(SanityTest, CreateVolume) {
  v1::CreateVolumeRequest request = Request("");
  EXPECT_EQ(Call(&Controller::CreateVolume, request).code, StatusCode::INVALID_ARGUMENT);
  request = Request("sanity-no-capabilities");
  request.clear_volume_capabilities();
  EXPECT_EQ(Call(&Controller::CreateVolume, request).code, StatusCode::INVALID_ARGUMENT);
  const v1::Volume first = Create(Sized("sanity-twice", Size()));
  EXPECT_GE(first.capacity_bytes(), Size());
  EXPECT_EQ(Create(Sized("sanity-twice", Size())).volume_id(), first.volume_id());
  EXPECT_EQ(Call(&Controller::CreateVolume, Sized("sanity-twice", 2 * Size())).code,
            StatusCode::ALREADY_EXISTS);
  Volume(std::string(128, 'n'));
  request = Request("sanity-topology");
  *request.mutable_accessibility_requirements()->add_requisite() =
      Call(&Node::NodeGetInfo, v1::NodeGetInfoRequest()).reply.accessible_topology();
  Create(request);
}

TEST_P(SanityTest, VolumesHaveSources) {
  const std::string volume = Volume("sanity-source");
  const v1::Snapshot snapshot = Snapshot("sanity-snapshot", volume);
  v1::CreateVolumeRequest request = Sized("sanity-from-snapshot", Size());
  auto& source = *request.mutable_volume_content_source();
  source.mutable_snapshot()->set_snapshot_id("non-existing-snapshot-id");
  EXPECT_EQ(Call(&Controller::CreateVolume, request).code, StatusCode::NOT_FOUND);
  source.mutable_snapshot()->set_snapshot_id(snapshot.snapshot_id());
  EXPECT_EQ(Create(request).content_source().snapshot().snapshot_id(), snapshot.snapshot_id());
  request.set_name("sanity-from-volume");
  source.mutable_volume()->set_volume_id(kFakeVolume);
  EXPECT_EQ(Call(&Controller::CreateVolume, request).code, StatusCode::NOT_FOUND);
  source.mutable_volume()->set_volume_id(volume);
  EXPECT_EQ(Create(request).content_source().volume().volume_id(), volume);
}

TEST_P(SanityTest, DeleteAndValidate) {
  EXPECT_EQ(Call(&Controller::DeleteVolume, v1::DeleteVolumeRequest()).code, StatusCode::INVALID_ARGUMENT);
  DeleteVolume("fake-vol-id");
  v1::ValidateVolumeCapabilitiesRequest request;
  EXPECT_EQ(Call(&Controller::ValidateVolumeCapabilities, request).code, StatusCode::INVALID_ARGUMENT);
  request.set_volume_id(Volume("sanity-validate"));
  EXPECT_EQ(Call(&Controller::ValidateVolumeCapabilities, request).code, StatusCode::INVALID_ARGUMENT);
  *request.add_volume_capabilities() = Capability();
  auto answer = Call(&Controller::ValidateVolumeCapabilities, request);
  ASSERT_TRUE(answer.ok()) << answer.message;
  EXPECT_EQ(answer.reply.confirmed().volume_capabilities_size(), 1);
  request.set_volume_id(kFakeVolume);
  EXPECT_EQ(Call(&Controller::ValidateVolumeCapabilities, request).code, StatusCode::NOT_FOUND);
}

TEST_P(SanityTest, SnapshotsAreListedByFilter) {
  EXPECT_THAT(Snapshots(), IsEmpty());
  const std::string a = Volume("sanity-a"), b = Volume("sanity-b");
  const std::string of_a = Snapshot("snapshot-a", a).snapshot_id();
  const std::string of_b = Snapshot("snapshot-b", b).snapshot_id();
  EXPECT_EQ(Snapshots().size(), 2u);
  EXPECT_THAT(Snapshots(of_b), testing::ElementsAre(of_b));
  EXPECT_THAT(Snapshots("", a), testing::ElementsAre(of_a));
  EXPECT_THAT(Snapshots("none-exist-id"), IsEmpty());
  EXPECT_THAT(Snapshots("", kFakeVolume), IsEmpty());
  DeleteSnapshot(of_b);
  EXPECT_THAT(Snapshots(), testing::ElementsAre(of_a));
}

TEST_P(SanityTest, SnapshotsHavePages) {
  const std::string volume = Volume("sanity-pages");
  for (const char* name : {"1", "2", "3", "4", "5"}) Snapshot(name, volume);
  v1::ListSnapshotsRequest request;
  request.set_max_entries(2);
  auto page = Call(&Controller::ListSnapshots, request);
  EXPECT_EQ(page.reply.entries_size(), 2);
  request.clear_max_entries();
  request.set_starting_token(page.reply.next_token());
  EXPECT_EQ(Call(&Controller::ListSnapshots, request).reply.entries_size(), 3);
}

TEST_P(SanityTest, CreateAndDeleteSnapshot) {
  EXPECT_EQ(Call(&Controller::DeleteSnapshot, v1::DeleteSnapshotRequest()).code,
            StatusCode::INVALID_ARGUMENT);
  DeleteSnapshot("reallyfakesnapshotid");
  EXPECT_EQ(Call(&Controller::CreateSnapshot, SnapshotRequest("", "testId")).code,
            StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(Call(&Controller::CreateSnapshot, SnapshotRequest("name", "")).code,
            StatusCode::INVALID_ARGUMENT);
  const std::string a = Volume("sanity-a"), b = Volume("sanity-b");
  for (const std::string& name : {std::string("snapshot"), std::string(128, 's')}) {
    EXPECT_EQ(Snapshot(name, a).snapshot_id(), Snapshot(name, a).snapshot_id());
  }
  EXPECT_EQ(Call(&Controller::CreateSnapshot, SnapshotRequest("snapshot", b)).code,
            StatusCode::ALREADY_EXISTS);
}

TEST_P(SanityTest, ControllerExpandVolume) {
  EXPECT_EQ(Expand("", Grown()).code, StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(Expand("", 0).code, StatusCode::INVALID_ARGUMENT);
  auto answer = Expand(Volume("sanity-expand"), Grown());
  ASSERT_TRUE(answer.ok()) << answer.message;
  EXPECT_EQ(answer.reply.capacity_bytes(), Grown());
}

TEST_P(SanityTest, NodeCallsRefuseWhatIsMissing) {
  const std::string id = Volume("sanity-node");
  v1::NodePublishVolumeRequest publish = PublishOf("");
  EXPECT_EQ(Call(&Node::NodePublishVolume, publish).code, StatusCode::INVALID_ARGUMENT);
  publish = PublishOf(kFakeVolume);
  publish.clear_target_path();
  EXPECT_EQ(Call(&Node::NodePublishVolume, publish).code, StatusCode::INVALID_ARGUMENT);
  publish = PublishOf(kFakeVolume);
  publish.clear_volume_capability();
  publish.clear_staging_target_path();
  EXPECT_EQ(Call(&Node::NodePublishVolume, publish).code, StatusCode::INVALID_ARGUMENT);
  v1::NodeUnpublishVolumeRequest unpublish;
  EXPECT_EQ(Call(&Node::NodeUnpublishVolume, unpublish).code, StatusCode::INVALID_ARGUMENT);
  unpublish.set_volume_id(kFakeVolume);
  EXPECT_EQ(Call(&Node::NodeUnpublishVolume, unpublish).code, StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(Call(&Node::NodeStageVolume, StageOf("")).code, StatusCode::INVALID_ARGUMENT);
  v1::NodeStageVolumeRequest stage = StageOf(kFakeVolume);
  stage.clear_staging_target_path();
  EXPECT_EQ(Call(&Node::NodeStageVolume, stage).code, StatusCode::INVALID_ARGUMENT);
  stage = StageOf(id);
  stage.clear_volume_capability();
  EXPECT_EQ(Call(&Node::NodeStageVolume, stage).code, StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(UnstageCode(""), StatusCode::INVALID_ARGUMENT);
  v1::NodeUnstageVolumeRequest unstage;
  unstage.set_volume_id(kFakeVolume);
  EXPECT_EQ(Call(&Node::NodeUnstageVolume, unstage).code, StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(NodeExpandCode("", target_), StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(NodeExpandCode(id, ""), StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(NodeExpandCode(kFakeVolume, kFakePath), StatusCode::NOT_FOUND);
  EXPECT_EQ(Stats("", kFakePath).code, StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(Stats(kFakeVolume, "").code, StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(Stats(kFakeVolume, kFakePath).code, StatusCode::NOT_FOUND);
}

TEST_P(SanityTest, AVolumeLivesOnTheNode) {
  const std::string id = Volume("sanity-node-full");
  UseVolume(id, 10);
  auto stats = Stats(id, target_);
  ASSERT_TRUE(stats.ok()) << stats.message;
  EXPECT_GT(stats.reply.usage_size(), 0);
  EXPECT_EQ(Stats(id, kFakePath).code, StatusCode::NOT_FOUND);
  EXPECT_EQ(UnpublishCode(id), StatusCode::OK);
  EXPECT_FALSE(PathExists(target_));
}

TEST_P(SanityTest, AVolumeThatHasGrownGrowsOnTheNode) {
  const std::string id = Volume("sanity-node-expand");
  EXPECT_EQ(Expand(id, Grown()).reply.capacity_bytes(), Grown());
  UseVolume(id);
  EXPECT_EQ(NodeExpandCode(id, target_), StatusCode::OK);
}

TEST_P(SanityTest, GroupController) {
  using RPC = v1::GroupControllerServiceCapability::RPC;
  auto capabilities =
      Call(&Group::GroupControllerGetCapabilities, v1::GroupControllerGetCapabilitiesRequest());
  ASSERT_EQ(capabilities.reply.capabilities_size(), 1);
  EXPECT_EQ(capabilities.reply.capabilities(0).rpc().type(), RPC::CREATE_DELETE_GET_VOLUME_GROUP_SNAPSHOT);
  EXPECT_EQ(Call(&Group::CreateVolumeGroupSnapshot, v1::CreateVolumeGroupSnapshotRequest()).code,
            StatusCode::INVALID_ARGUMENT);
  v1::GetVolumeGroupSnapshotRequest get;
  EXPECT_EQ(Call(&Group::GetVolumeGroupSnapshot, get).code, StatusCode::INVALID_ARGUMENT);
  get.set_group_snapshot_id("fake-vol-id");
  EXPECT_EQ(Call(&Group::GetVolumeGroupSnapshot, get).code, StatusCode::NOT_FOUND);
  v1::DeleteVolumeGroupSnapshotRequest remove;
  EXPECT_EQ(Call(&Group::DeleteVolumeGroupSnapshot, remove).code, StatusCode::INVALID_ARGUMENT);
  remove.set_group_snapshot_id("fake-vol-id");
  EXPECT_EQ(Call(&Group::DeleteVolumeGroupSnapshot, remove).code, StatusCode::OK);
}

}  // namespace
}  // namespace keelson::csi::local
