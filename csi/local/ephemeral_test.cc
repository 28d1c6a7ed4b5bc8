// Inline volumes of pods: NodePublishVolume makes them, NodeUnpublishVolume deletes them.
#include <gmock/gmock.h>

#include "csi/local/testing/driver_fixture.h"
#include "lib/base/file.h"
#include "lib/linux/mount.h"

namespace keelson::csi::local {
namespace {

using grpc::StatusCode;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using Controller = v1::Controller::Stub;
using Node = v1::Node::Stub;

// As kubelets name them.
std::string HandleOf(char digit) { return "csi-" + std::string(64, digit); }

class EphemeralVolumeTest : public DriverFixture {
 protected:
  v1::NodePublishVolumeRequest Request(const std::string& id, const std::string& size = "64Mi") const {
    v1::NodePublishVolumeRequest request;
    request.set_volume_id(id);
    request.set_target_path(TargetOf(id));
    *request.mutable_volume_capability() = Mount();
    auto& context = *request.mutable_volume_context();
    context["csi.storage.k8s.io/ephemeral"] = "true";
    context["csi.storage.k8s.io/pod.name"] = "p";
    context["size"] = size;
    return request;
  }
  // The directory that the kubelet makes, and the driver's below it.
  std::string PodOf(const std::string& id) const { return dir_ + "/pods/" + id; }
  std::string TargetOf(const std::string& id) const { return PodOf(id) + "/mount"; }
  StatusCode PublishCode(const v1::NodePublishVolumeRequest& request) {
    auto answer = Call(&Node::NodePublishVolume, request);
    message_ = answer.message;
    return answer.code;
  }
  void Publish(const v1::NodePublishVolumeRequest& request) {
    EXPECT_TRUE(MakeDirs(PodOf(request.volume_id())));
    EXPECT_EQ(PublishCode(request), StatusCode::OK) << message_;
  }
  StatusCode UnpublishCode(const std::string& id) {
    v1::NodeUnpublishVolumeRequest request;
    request.set_volume_id(id);
    request.set_target_path(TargetOf(id));
    return Call(&Node::NodeUnpublishVolume, request).code;
  }
  Answer<v1::NodeGetVolumeStatsResponse> Stats(const std::string& id) {
    v1::NodeGetVolumeStatsRequest request;
    request.set_volume_id(id);
    request.set_volume_path(TargetOf(id));
    return Call(&Node::NodeGetVolumeStats, request);
  }
  void ExpectNothingLeft() {
    EXPECT_THAT(Mounts(), IsEmpty());
    EXPECT_THAT(Loops(), IsEmpty());
    EXPECT_THAT(Files("volumes"), IsEmpty());
  }
  std::string message_;
};

TEST_F(EphemeralVolumeTest, LivesAsLongAsItIsPublished) {
  Start({"--directory-quotas=false"});
  for (const char* type : {"file", "directory"}) {
    SCOPED_TRACE(type);
    const std::string id = HandleOf('a');
    v1::NodePublishVolumeRequest request = Request(id);
    (*request.mutable_volume_context())["type"] = type;
    Publish(request);
    ASSERT_TRUE(WriteFile(TargetOf(id) + "/file", "kept"));
    // A kubelet that starts anew publishes again, and a driver that does has forgotten nothing.
    Publish(request);
    Kill();
    Start({"--directory-quotas=false"});
    Publish(request);
    EXPECT_EQ(*ReadFile(TargetOf(id) + "/file"), "kept");
    EXPECT_THAT(Mounts(), SizeIs(1));
    EXPECT_TRUE(Stats(id).ok());
    EXPECT_EQ(UnpublishCode(id), StatusCode::OK);
    EXPECT_EQ(UnpublishCode(id), StatusCode::OK) << "once more";
    EXPECT_FALSE(PathExists(TargetOf(id)));
    ExpectNothingLeft();
    Publish(request);
    EXPECT_FALSE(PathExists(TargetOf(id) + "/file")) << "an empty volume";
    EXPECT_EQ(UnpublishCode(id), StatusCode::OK);
  }
}

TEST_F(EphemeralVolumeTest, HasItsSizeAndMode) {
  Start();
  const std::string id = HandleOf('b');
  v1::NodePublishVolumeRequest request = Request(id, "300Mi");
  request.mutable_volume_capability()->mutable_mount()->set_fs_type("xfs");
  request.set_readonly(true);
  Publish(request);
  EXPECT_FALSE(WriteFile(TargetOf(id) + "/file", "x")) << "it is read-only";
  const auto stats = Stats(id);
  ASSERT_TRUE(stats.ok()) << stats.message;
  EXPECT_GT(stats.reply.usage(0).total(), 200 * kMi);
  EXPECT_LE(stats.reply.usage(0).total(), 300 * kMi);
  EXPECT_EQ(PublishCode(Request(id, "64Mi")), StatusCode::ALREADY_EXISTS);
  EXPECT_THAT(message_, HasSubstr("another size"));
  EXPECT_EQ(UnpublishCode(id), StatusCode::OK);
  ExpectNothingLeft();
}

TEST_F(EphemeralVolumeTest, ControllersDoNotSeeIt) {
  Start();
  const std::string id = HandleOf('c');
  Publish(Request(id));
  EXPECT_EQ(Call(&Controller::ListVolumes, v1::ListVolumesRequest()).reply.entries_size(), 0);
  const std::string own = Files("volumes").front().substr(0, Files("volumes").front().find('.'));
  for (const std::string& name : {id, own}) {
    v1::DeleteVolumeRequest remove;
    remove.set_volume_id(name);
    EXPECT_EQ(Call(&Controller::DeleteVolume, remove).code, StatusCode::OK);
    v1::CreateSnapshotRequest snapshot;
    snapshot.set_name("s");
    snapshot.set_source_volume_id(name);
    EXPECT_EQ(Call(&Controller::CreateSnapshot, snapshot).code, StatusCode::NOT_FOUND);
    EXPECT_EQ(Call(&Node::NodeStageVolume, StageRequest(name)).code, StatusCode::NOT_FOUND);
  }
  EXPECT_THAT(Files("volumes"), SizeIs(2)) << "record and image";
  EXPECT_EQ(UnpublishCode(id), StatusCode::OK);
  ExpectNothingLeft();
}

TEST_F(EphemeralVolumeTest, RefusesWhatAPodMayNotAsk) {
  Start({"--overprovision-ratio=1"});
  const std::string id = HandleOf('d');
  ASSERT_TRUE(MakeDirs(PodOf(id)));
  const auto with = [&](const std::string& key, const std::string& value) {
    v1::NodePublishVolumeRequest request = Request(id);
    (*request.mutable_volume_context())[key] = value;
    return PublishCode(request);
  };
  EXPECT_EQ(with("path", "/etc"), StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(with("size", "-1"), StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(with("size", "1E"), StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(with("type", "directory"), StatusCode::FAILED_PRECONDITION) << "without quotas";
  EXPECT_EQ(with("type", "lvm"), StatusCode::FAILED_PRECONDITION) << "without a pool";
  v1::NodePublishVolumeRequest request = Request(id);
  *request.mutable_volume_capability() = Block();
  EXPECT_EQ(PublishCode(request), StatusCode::INVALID_ARGUMENT);
  request = Request(id);
  request.mutable_volume_capability()->mutable_mount()->add_mount_flags("bind");
  EXPECT_EQ(PublishCode(request), StatusCode::INVALID_ARGUMENT);
  request = Request(id);
  request.set_target_path(dir_ + "/pods/../elsewhere");
  EXPECT_EQ(PublishCode(request), StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(UnpublishCode(id), StatusCode::OK);
  ExpectNothingLeft();
}

// No kubelet would unpublish it.
TEST_F(EphemeralVolumeTest, GoesWithTheDirectoryOfItsPod) {
  Start();
  const std::string lost = HandleOf('e'), kept = HandleOf('f');
  for (const std::string& id : {lost, kept}) Publish(Request(id));
  Kill();
  // As after a node's restart, and the removal of the kubelet's directory.
  for (const std::string& point : Mounts()) ASSERT_TRUE(linux::Unmount(point));
  ASSERT_TRUE(RemoveTree(PodOf(lost)));
  Start();
  EXPECT_THAT(Files("volumes"), SizeIs(2)) << "one volume";
  EXPECT_EQ(UnpublishCode(kept), StatusCode::OK);
  ExpectNothingLeft();
}

}  // namespace
}  // namespace keelson::csi::local
