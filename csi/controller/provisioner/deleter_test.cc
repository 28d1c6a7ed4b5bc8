#include "csi/controller/provisioner/deleter.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>

#include "csi/controller/model/names.h"
#include "csi/controller/testing/controller_test.h"
#include "lib/metrics/metrics.h"

namespace keelson::csi::controller {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class DeleterTest : public ControllerTest {
 protected:
  void Start(const std::string& node = "") {
    StartControllers(
        [&](const Environment& environment) {
          controllers_.push_back(std::make_unique<Deleter>(environment));
        },
        node);
  }
  Volume PutVolume(const std::string& name, const std::string& phase, const std::string& policy = "Delete",
                   const std::string& annotations = "", const std::string& more = "") {
    driver_->AddVolume("id-" + name, 1);
    return Put<Volume>(R"({"metadata":{"name":")" + name + R"(","uid":"uid-)" + name +
                       R"(","annotations":{"pv.kubernetes.io/provisioned-by":"disk.example.com")" +
                       annotations +
                       R"(},"finalizers":["external-provisioner.volume.kubernetes.io/finalizer"]},"spec":{
        "persistentVolumeReclaimPolicy":")" +
                       policy + R"(","csi":{"driver":"disk.example.com","volumeHandle":"id-)" + name +
                       R"("})" + more + R"(},"status":{"phase":")" + phase + R"("}})");
  }
  bool AwaitGone(const std::string& name) {
    return Eventually([&] { return !Get<Volume>("", name); });
  }
};

TEST_F(DeleterTest, DeletesReleasedVolumes) {
  Start();
  PutVolume("bound", "Bound");
  PutVolume("retained", "Released", "Retain");
  PutVolume("done", "Released");
  EXPECT_TRUE(AwaitGone("done"));
  EXPECT_THAT(driver_->Calls(), ElementsAre("DeleteVolume id-done"));
  EXPECT_TRUE(Get<Volume>("", "bound"));
  // Nothing is to be done behind a volume that is retained.
  EXPECT_TRUE(Eventually([&] { return Get<Volume>("", "retained")->metadata().finalizers_size() == 0; }));
}

TEST_F(DeleterTest, LeavesVolumesOfOthersAlone) {
  Start();
  Volume foreign = PutVolume("foreign", "Bound");
  foreign.mutable_spec()->mutable_persistent_volume_source()->mutable_csi()->set_driver("else.example.com");
  foreign.mutable_status()->set_phase("Released");
  fake_->Put(foreign);
  PutVolume("done", "Released");
  EXPECT_TRUE(AwaitGone("done"));
  EXPECT_TRUE(Get<Volume>("", "foreign"));
  EXPECT_THAT(driver_->Calls(), ElementsAre("DeleteVolume id-done"));
}

// Somebody deletes the object first; the driver has to be told all the same.
TEST_F(DeleterTest, HonoursThePolicyOfDeletedObjects) {
  Volume volume = PutVolume("early", "Bound");
  volume.mutable_metadata()->clear_finalizers();
  fake_->Put(volume);
  Start();
  ASSERT_TRUE(
      Eventually([&] { return HasFinalizer(Get<Volume>("", "early")->metadata(), kProvisionerFinalizer); }));
  ASSERT_TRUE(api_.Delete<Volume>("", "early"));
  volume = *Get<Volume>("", "early");
  EXPECT_TRUE(volume.metadata().has_deletion_timestamp());
  EXPECT_EQ(driver_->Count("DeleteVolume"), 0);
  volume.mutable_status()->set_phase("Released");
  fake_->Put(volume);
  EXPECT_TRUE(AwaitGone("early"));
  EXPECT_THAT(driver_->Calls(), ElementsAre("DeleteVolume id-early"));
}

TEST_F(DeleterTest, TriesAgainAndTellsWhy) {
  Start();
  driver_->Fail("DeleteVolume", grpc::StatusCode::FAILED_PRECONDITION, "in use", 2);
  PutVolume("done", "Released");
  EXPECT_TRUE(AwaitGone("done"));
  EXPECT_TRUE(Eventually(
      [&] { return HasEvent("VolumeFailedDelete", "rpc error: code = FailedPrecondition desc = in use"); }));
  EXPECT_EQ(driver_->Count("DeleteVolume"), 3);
  EXPECT_TRUE(Eventually([&] {
    const std::string all = metrics::Print();
    return all.find("controller_persistentvolume_delete_failed_total{class=") != std::string::npos &&
           all.find("controller_persistentvolume_delete_total{class=") != std::string::npos;
  }));
}

TEST_F(DeleterTest, WaitsForTheLastAttachment) {
  driver_->SetCapabilities({"CREATE_DELETE_VOLUME", "PUBLISH_UNPUBLISH_VOLUME"});
  Put<storagev1::VolumeAttachment>(
      R"({"metadata":{"name":"a"},"spec":{"attacher":"disk.example.com","nodeName":"n1",
      "source":{"persistentVolumeName":"done"}}})");
  Start();
  PutVolume("done", "Released");
  ASSERT_TRUE(Eventually(
      [&] { return HasEvent("VolumeFailedDelete", "persistentvolume done is still attached to node n1"); }));
  EXPECT_THAT(driver_->Calls(), IsEmpty());
  ASSERT_TRUE(api_.Delete<storagev1::VolumeAttachment>("", "a"));
  EXPECT_TRUE(AwaitGone("done"));
}

TEST_F(DeleterTest, SendsTheSecretThatTheVolumeNames) {
  Put<corev1::Secret>(R"({"metadata":{"name":"del","namespace":"storage"},"data":{"key":"c2VjcmV0"}})");
  Start();
  PutVolume("done", "Released", "Delete",
            R"(,"volume.kubernetes.io/provisioner-deletion-secret-name":"del",
                "volume.kubernetes.io/provisioner-deletion-secret-namespace":"storage")");
  EXPECT_TRUE(AwaitGone("done"));
  EXPECT_THAT(driver_->LastRequest("DeleteVolume"), HasSubstr("secret"));
}

TEST_F(DeleterTest, FindsTheSecretOfTheClassForOldVolumes) {
  Put<corev1::Secret>(R"({"metadata":{"name":"of-data","namespace":"ns"},"data":{"key":"c2VjcmV0"}})");
  Put<storagev1::StorageClass>(R"({"metadata":{"name":"fast"},"provisioner":"disk.example.com","parameters":{
      "csi.storage.k8s.io/provisioner-secret-name":"of-${pvc.name}",
      "csi.storage.k8s.io/provisioner-secret-namespace":"${pvc.namespace}"}})");
  Start();
  PutVolume("done", "Released", "Delete", "",
            R"(,"storageClassName":"fast","claimRef":{"name":"data","namespace":"ns"})");
  EXPECT_TRUE(AwaitGone("done"));
  EXPECT_THAT(driver_->LastRequest("DeleteVolume"), HasSubstr("secret"));
}

TEST_F(DeleterTest, OnANodeDeletesItsOwnVolumes) {
  driver_->SetNodeTopology({{"node", "n1"}});
  auto at = [](const std::string& node) {
    return R"(,"nodeAffinity":{"required":{"nodeSelectorTerms":[{"matchExpressions":[
        {"key":"node","operator":"In","values":[")" +
           node + R"("]}]}]}})";
  };
  Start("n1");
  PutVolume("theirs", "Released", "Delete", "", at("n2"));
  PutVolume("nowhere", "Released");
  PutVolume("ours", "Released", "Delete", "", at("n1"));
  EXPECT_TRUE(AwaitGone("ours"));
  EXPECT_THAT(driver_->Calls(), ElementsAre("DeleteVolume id-ours"));
  EXPECT_TRUE(Get<Volume>("", "theirs"));
  EXPECT_TRUE(Get<Volume>("", "nowhere"));
}

// The volume is gone in the driver, the finalizer could not be removed.
TEST_F(DeleterTest, GoesOnAfterARestart) {
  fake_->SetInterceptor([&](const client::ApiRequest& request) -> std::optional<Result<client::ApiResponse>> {
    if (request.method != "PUT") return std::nullopt;
    return client::FakeApi::Refuse(Error(Code::kUnavailable, "away"));
  });
  Start();
  PutVolume("done", "Released");
  ASSERT_TRUE(Eventually([&] { return Get<Volume>("", "done")->metadata().has_deletion_timestamp(); }));
  StopControllers();
  fake_->SetInterceptor(nullptr);
  Start();
  EXPECT_TRUE(AwaitGone("done"));
  EXPECT_EQ(driver_->Volumes().count("id-done"), 0U);
}

}  // namespace
}  // namespace keelson::csi::controller
