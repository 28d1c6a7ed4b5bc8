#include "csi/controller/snapshotter/snapshot_controller.h"

#include <gmock/gmock.h>

#include "csi/controller/testing/snapshot_test.h"
#include "lib/metrics/metrics.h"

namespace keelson::csi::controller {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

class SnapshotControllerTest : public SnapshotTest {
 protected:
  static bool HasTime(const std::string& operation, const std::string& status) {
    return metrics::Print().find(
               "snapshot_controller_operation_total_seconds_count{driver_name=\"disk.example.com\","
               "operation_name=\"" +
               operation + "\",snapshot_type=\"dynamic\",operation_status=\"" + status + "\"}") !=
           std::string::npos;
  }
};

TEST_F(SnapshotControllerTest, FromClaimToSnapshotAndBack) {
  PutClass("fast");
  PutClaim("data");
  Start();
  const Snapshot made = PutSnapshot("s", "data");
  ASSERT_TRUE(AwaitReady("s"));
  const std::string uid = made.meta.uid();
  EXPECT_THAT(driver_->Snapshots(), ElementsAre(Pair("id-snapshot-" + uid, "id-data")));
  EXPECT_THAT(driver_->LastRequest("CreateSnapshot"), HasSubstr("speed"));
  const Snapshot ready = *GetSnapshot("s");
  EXPECT_EQ(ready.status->bound_content, "snapcontent-" + uid);
  EXPECT_EQ(ready.status->restore_size, "1Mi");
  EXPECT_EQ(ready.status->creation_time, "2023-11-14T22:13:20Z");
  EXPECT_FALSE(ready.status->error);
  const SnapshotContent content = *GetContent("snapcontent-" + uid);
  EXPECT_TRUE(PointsTo(content, ready));
  EXPECT_EQ(content.status->handle, "id-snapshot-" + uid);
  EXPECT_EQ(content.source_volume_mode, "Filesystem");
  EXPECT_TRUE(Eventually([&] {
    return HasFinalizer(GetSnapshot("s")->meta, kSnapshotBoundFinalizer) &&
           GetContent("snapcontent-" + uid)->meta.annotations().count(kBeingCreated) == 0;
  }));
  EXPECT_FALSE(IsProtected("data"));
  for (const char* reason : {"CreatingSnapshot", "SnapshotCreated", "SnapshotReady"}) {
    EXPECT_TRUE(Eventually([&] { return HasEvent(reason, "default/s"); })) << reason;
  }

  DeleteSnapshot("s");
  EXPECT_TRUE(AwaitGone("s"));
  EXPECT_FALSE(GetContent("snapcontent-" + uid));
  EXPECT_THAT(driver_->Snapshots(), IsEmpty());
  for (const char* operation : {kCreateSnapshot, kCreateSnapshotAndReady, kDeleteSnapshot}) {
    EXPECT_TRUE(Eventually([&] { return HasTime(operation, "success"); })) << operation;
  }
}

TEST_F(SnapshotControllerTest, RetainedContentStays) {
  PutClass("kept", "Retain");
  PutClaim("data");
  Start();
  const std::string content = "snapcontent-" + PutSnapshot("s", "data", "kept").meta.uid();
  ASSERT_TRUE(AwaitReady("s"));
  DeleteSnapshot("s");
  ASSERT_TRUE(AwaitGone("s"));
  EXPECT_TRUE(GetContent(content));
  EXPECT_EQ(driver_->Snapshots().size(), 1U);
  // The administrator removes the object; the driver keeps the snapshot.
  ASSERT_TRUE(custom_api_.Delete(SnapshotContentRow(), "", content));
  EXPECT_TRUE(Eventually([&] { return !GetContent(content); }));
  EXPECT_EQ(driver_->Snapshots().size(), 1U);
  EXPECT_EQ(driver_->Count("DeleteSnapshot"), 0);
}

TEST_F(SnapshotControllerTest, TheDefaultClassOfTheDriver) {
  PutClaim("data");
  Start();
  PutSnapshot("s", "data", "");
  ASSERT_TRUE(AwaitError("s", "Failed to set default snapshot class with error cannot find default"));
  EXPECT_TRUE(Eventually([&] { return HasEvent("SetDefaultSnapshotClassFailed", "cannot find"); }));
  PutClass("fast", "Delete", "", true);
  ASSERT_TRUE(AwaitReady("s"));
  EXPECT_EQ(GetSnapshot("s")->class_name, "fast");
}

TEST_F(SnapshotControllerTest, ReportsWhatIsMissing) {
  PutClass("fast");
  Start();
  PutSnapshot("s", "data");
  EXPECT_TRUE(AwaitError("s", "Failed to create snapshot content with error failed to retrieve PVC data"));
  Put<Claim>(
      R"({"metadata":{"name":"data","namespace":"default","uid":"uid-data"},"status":{"phase":"Pending"}})");
  EXPECT_TRUE(AwaitError("s", "the PVC data is not yet bound to a PV"));
  EXPECT_FALSE(IsProtected("data"));
  PutClaim("data");
  EXPECT_TRUE(AwaitReady("s"));
  EXPECT_FALSE(GetSnapshot("s")->status->error);

  PutSnapshot("t", "data", "none");
  EXPECT_TRUE(AwaitError("t", R"("none" not found)"));
  Create(SnapshotClassRow(),
         R"({"metadata":{"name":"foreign"},"driver":"else.example.com","deletionPolicy":"Delete"})");
  PutSnapshot("u", "data", "foreign");
  EXPECT_TRUE(AwaitError("u", "is of driver else.example.com"));
  for (const char* name : {"t", "u"}) {
    DeleteSnapshot(name);
    EXPECT_TRUE(AwaitGone(name));
  }
}

TEST_F(SnapshotControllerTest, TheClaimStaysUntilTheSnapshotIsReady) {
  PutClass("fast");
  PutClaim("data");
  driver_->SetSnapshotsReady(false);
  Start();
  PutSnapshot("s", "data");
  ASSERT_TRUE(Eventually([&] {
    const auto snapshot = GetSnapshot("s");
    return snapshot->status && snapshot->status->creation_time;
  }));
  EXPECT_FALSE(GetSnapshot("s")->IsReady());
  EXPECT_TRUE(IsProtected("data"));
  ASSERT_TRUE(api_.Delete<Claim>("default", "data"));
  EXPECT_TRUE(Get<Claim>("default", "data"));
  driver_->SetSnapshotsReady(true);
  EXPECT_TRUE(AwaitReady("s"));
  EXPECT_FALSE(Get<Claim>("default", "data"));
}

TEST_F(SnapshotControllerTest, ASnapshotThatGoesEarlyFreesTheClaim) {
  PutClass("fast");
  PutClaim("data");
  driver_->Fail("CreateSnapshot", 13, "broken", 1000000);
  Start();
  const std::string content = "snapcontent-" + PutSnapshot("s", "data").meta.uid();
  ASSERT_TRUE(AwaitError("s", "broken"));
  EXPECT_TRUE(IsProtected("data"));
  DeleteSnapshot("s");
  ASSERT_TRUE(AwaitGone("s"));
  EXPECT_FALSE(IsProtected("data"));
  EXPECT_TRUE(Eventually([&] { return !GetContent(content); }));
  EXPECT_TRUE(Eventually([&] { return HasTime(kCreateSnapshot, "cancel"); }));
}

// Also one that is deleted before it has the finalizer for that.
TEST_F(SnapshotControllerTest, ASnapshotStaysUntilItsContentIsGone) {
  PutClass("fast");
  PutClaim("data");
  fake_->SetInterceptor([&](const client::ApiRequest& request) -> std::optional<Result<client::ApiResponse>> {
    const bool binds = request.method == "PUT" && request.target.ends_with("/volumesnapshots/s") &&
                       request.body.find(kSnapshotBoundFinalizer) != std::string::npos;
    if (!binds) return std::nullopt;
    return client::FakeApi::Refuse(Error(Code::kUnavailable, "away"));
  });
  driver_->Fail("DeleteSnapshot", 13, "stuck", 1000000);
  Start();
  const std::string content = "snapcontent-" + PutSnapshot("s", "data").meta.uid();
  ASSERT_TRUE(Eventually([&] {
    const auto made = GetContent(content);
    return made && made->IsReady();
  }));
  DeleteSnapshot("s");
  ASSERT_TRUE(Eventually([&] { return HasEvent("SnapshotDeleteError", "Failed to delete snapshot"); }));
  EXPECT_TRUE(GetSnapshot("s"));
  driver_->Fail("DeleteSnapshot", 0, "", 0);
  EXPECT_TRUE(AwaitGone("s"));
  EXPECT_FALSE(GetContent(content));
}

TEST_F(SnapshotControllerTest, BindsAContentThatWasThereBefore) {
  driver_->AddSnapshot("old", 1 << 30);
  Start();
  const auto snapshot = ReadSnapshot(Create(SnapshotRow(), R"({"metadata":{"name":"s","namespace":"default"},
      "spec":{"source":{"volumeSnapshotContentName":"c"}}})"));
  EXPECT_TRUE(AwaitError("s", "VolumeSnapshotContent is missing"));
  Create(SnapshotContentRow(), R"({"metadata":{"name":"c"},"spec":{"driver":"disk.example.com",
      "deletionPolicy":"Delete","source":{"snapshotHandle":"old"},
      "volumeSnapshotRef":{"name":"s","namespace":"default"}}})");
  ASSERT_TRUE(AwaitReady("s"));
  EXPECT_EQ(GetSnapshot("s")->status->restore_size, "1Gi");
  EXPECT_EQ(GetContent("c")->snapshot_uid, snapshot->meta.uid());
  EXPECT_TRUE(HasFinalizer(GetContent("c")->meta, kContentFinalizer));
  // Another snapshot of this content.
  Create(SnapshotRow(), R"({"metadata":{"name":"t","namespace":"default"},
      "spec":{"source":{"volumeSnapshotContentName":"c"}}})");
  EXPECT_TRUE(AwaitError("t", "VolumeSnapshotContent [c] is bound to a different snapshot"));
  DeleteSnapshot("t");
  EXPECT_TRUE(AwaitGone("t"));
  EXPECT_TRUE(GetContent("c"));
  DeleteSnapshot("s");
  EXPECT_TRUE(AwaitGone("s"));
  EXPECT_FALSE(GetContent("c"));
  EXPECT_THAT(driver_->Snapshots(), IsEmpty());
}

TEST_F(SnapshotControllerTest, ASnapshotThatIsRestoredStays) {
  PutClass("fast");
  PutClaim("data");
  Start();
  PutSnapshot("s", "data");
  ASSERT_TRUE(AwaitReady("s"));
  Claim copy = Put<Claim>(R"({"metadata":{"name":"copy","namespace":"default"},"spec":{"dataSource":{
      "apiGroup":"snapshot.storage.k8s.io","kind":"VolumeSnapshot","name":"s"}},"status":{"phase":"Pending"}})");
  DeleteSnapshot("s");
  EXPECT_TRUE(Eventually([&] { return HasEvent("SnapshotDeletePending", "being used to restore"); }));
  EXPECT_TRUE(GetSnapshot("s"));
  EXPECT_EQ(driver_->Snapshots().size(), 1U);
  copy.mutable_status()->set_phase("Bound");
  fake_->Put(copy);
  EXPECT_TRUE(AwaitGone("s"));
  EXPECT_THAT(driver_->Snapshots(), IsEmpty());
}

// No other snapshot is taken under its name.
TEST_F(SnapshotControllerTest, TellsOfALostContent) {
  PutClass("fast");
  PutClaim("data");
  Start();
  const std::string content = "snapcontent-" + PutSnapshot("s", "data").meta.uid();
  ASSERT_TRUE(AwaitReady("s"));
  ASSERT_TRUE(custom_api_.UpdateWithRetry(SnapshotContentRow(), "", content, "",
                                          [](CustomObject& object) -> Result<bool> {
                                            object.mutable_metadata()->clear_finalizers();
                                            return true;
                                          }));
  // The controller may put its finalizer back first: with it the content stays.
  ASSERT_TRUE(Eventually([&] { return HasFinalizer(GetContent(content)->meta, kContentFinalizer); }));
  StopControllers();
  ASSERT_TRUE(custom_api_.UpdateWithRetry(SnapshotContentRow(), "", content, "",
                                          [](CustomObject& object) -> Result<bool> {
                                            object.mutable_metadata()->clear_finalizers();
                                            return true;
                                          }));
  ASSERT_TRUE(custom_api_.Delete(SnapshotContentRow(), "", content));
  Start();
  EXPECT_TRUE(AwaitError("s", "VolumeSnapshotContent is missing"));
  EXPECT_FALSE(GetSnapshot("s")->IsReady());
  DeleteSnapshot("s");
  EXPECT_TRUE(AwaitGone("s"));
  EXPECT_EQ(driver_->Count("CreateSnapshot"), 1);
}

TEST_F(SnapshotControllerTest, OneSnapshotterOnEachNode) {
  Put<corev1::Node>(R"({"metadata":{"name":"n1","labels":{"host":"h1"}}})");
  Put<corev1::Node>(R"({"metadata":{"name":"n2","labels":{"host":"h2"}}})");
  auto at = [](const std::string& host) {
    return R"(,"nodeAffinity":{"required":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"host","operator":"In",
        "values":[")" +
           host + R"("]}]}]}})";
  };
  PutClass("fast");
  PutClaim("here", at("h1"));
  PutClaim("there", at("h2"));
  Start("n1");
  PutSnapshot("here", "here");
  const std::string there = "snapcontent-" + PutSnapshot("there", "there").meta.uid();
  EXPECT_TRUE(AwaitReady("here"));
  ASSERT_TRUE(Eventually([&] { return GetContent(there).has_value(); }));
  EXPECT_EQ(GetContent(there)->meta.labels().at(kManagedByNode), "n2");
  StopControllers();
  EXPECT_EQ(driver_->Snapshots().size(), 1U);
  Start("n2");
  EXPECT_TRUE(AwaitReady("there"));
}

}  // namespace
}  // namespace keelson::csi::controller
