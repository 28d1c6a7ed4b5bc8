#include "csi/controller/snapshotter/content_controller.h"

#include <gmock/gmock.h>

#include "csi/controller/testing/snapshot_test.h"

namespace keelson::csi::controller {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ContentControllerTest : public SnapshotTest {
 protected:
  void SetUp() override {
    SnapshotTest::SetUp();
    PutClass("fast");
    driver_->AddVolume("v", 1 << 20);
  }
  // The sidecar alone: another program is the snapshot-controller.
  void Start(const SnapshotterOptions& options = {}) {
    StartControllers([&](const Environment& environment) {
      controllers_.push_back(std::make_unique<ContentController>(environment, *custom_, options));
    });
  }
  void PutContent(const std::string& annotations = "", const std::string& driver = "disk.example.com",
                  const std::string& class_name = "fast") {
    Create(SnapshotContentRow(), R"({"metadata":{"name":"c","finalizers":[
        "snapshot.storage.kubernetes.io/volumesnapshotcontent-bound-protection"],"annotations":{)" +
                                     annotations + R"(}},"spec":{"driver":")" + driver +
                                     R"(","deletionPolicy":"Delete","volumeSnapshotClassName":")" +
                                     class_name +
                                     R"(","source":{"volumeHandle":"v"},
        "volumeSnapshotRef":{"name":"s","namespace":"default","uid":"u"}}})");
  }
  // What the snapshot-controller does when the snapshot is deleted.
  void DeleteContent() {
    ASSERT_TRUE(custom_api_.UpdateWithRetry(
        SnapshotContentRow(), "", "c", "", [](CustomObject& object) -> Result<bool> {
          (*object.mutable_metadata()->mutable_annotations())[kBeingDeleted] = "yes";
          return true;
        }));
    ASSERT_TRUE(custom_api_.Delete(SnapshotContentRow(), "", "c"));
  }
  bool AwaitStatus(const std::function<bool(const ContentStatus&)>& holds) {
    return Eventually([&] {
      const auto content = GetContent("c");
      return content && content->status && holds(*content->status);
    });
  }
  bool AwaitContentReady() {
    return AwaitStatus([](const ContentStatus& status) { return status.ready.value_or(false); });
  }
  bool IsBeingCreated() { return GetContent("c")->meta.annotations().count(kBeingCreated) > 0; }
};

TEST_F(ContentControllerTest, TakesAndDeletesWithSecrets) {
  corev1::Secret secret;
  secret.mutable_metadata()->set_name("key");
  secret.mutable_metadata()->set_namespace_("ns");
  (*secret.mutable_data())["word"] = "sesame";
  fake_->Put(secret);
  Start({"snap", 4, true});
  PutContent(R"("snapshot.storage.kubernetes.io/deletion-secret-name":"key",
      "snapshot.storage.kubernetes.io/deletion-secret-namespace":"ns")");
  ASSERT_TRUE(AwaitContentReady());
  EXPECT_THAT(driver_->LastRequest("CreateSnapshot"),
              AllOf(HasSubstr("name: \"snap-u\""), HasSubstr("sesame"), HasSubstr("speed"),
                    HasSubstr("csi.storage.k8s.io/volumesnapshotcontent/name")));
  EXPECT_EQ(GetContent("c")->status->creation_time, 1'700'000'000'000'000'000);
  EXPECT_TRUE(Eventually([&] { return !IsBeingCreated(); }));
  DeleteContent();
  EXPECT_TRUE(Eventually([&] { return !GetContent("c"); }));
  EXPECT_THAT(driver_->LastRequest("DeleteSnapshot"), HasSubstr("sesame"));
  EXPECT_THAT(driver_->Snapshots(), IsEmpty());
}

TEST_F(ContentControllerTest, LeavesContentsOfOtherDriversAlone) {
  Start();
  PutContent("", "else.example.com");
  Create(SnapshotContentRow(), R"({"metadata":{"name":"d"},"spec":{"driver":"disk.example.com",
      "deletionPolicy":"Delete","volumeSnapshotClassName":"fast","source":{"volumeHandle":"v"},
      "volumeSnapshotRef":{"name":"d","namespace":"default","uid":"ud"}}})");
  ASSERT_TRUE(Eventually([&] { return GetContent("d")->IsReady(); }));
  EXPECT_EQ(driver_->Count("CreateSnapshot"), 1);
  EXPECT_FALSE(GetContent("c")->status);
}

// While nothing is known of the call, the content stays.
TEST_F(ContentControllerTest, ALateAnswerIsWaitedFor) {
  driver_->Fail("CreateSnapshot", 4, "too late", 1000000, true);
  Start();
  PutContent();
  ASSERT_TRUE(AwaitStatus([](const ContentStatus& status) {
    return status.error && status.error->message.find("too late") != std::string::npos;
  }));
  EXPECT_TRUE(Eventually(
      [&] { return HasEvent("SnapshotCreationFailed", "failed to take snapshot of the volume v"); }));
  EXPECT_TRUE(IsBeingCreated());
  DeleteContent();
  const int calls = driver_->Count("CreateSnapshot");
  EXPECT_TRUE(Eventually([&] { return driver_->Count("CreateSnapshot") > calls + 1; }));
  EXPECT_TRUE(GetContent("c"));
  EXPECT_EQ(driver_->Count("DeleteSnapshot"), 0);
  driver_->Fail("CreateSnapshot", 0, "", 0);
  EXPECT_TRUE(Eventually([&] { return !GetContent("c"); }));
  EXPECT_THAT(driver_->Snapshots(), IsEmpty());
}

TEST_F(ContentControllerTest, AFailureThatIsKnownHoldsNothingBack) {
  driver_->Fail("CreateSnapshot", 3, "bad parameter", 1000000);
  Start();
  PutContent();
  ASSERT_TRUE(AwaitStatus([](const ContentStatus& status) { return status.error.has_value(); }));
  EXPECT_TRUE(Eventually([&] { return driver_->Count("CreateSnapshot") > 1; }));
  DeleteContent();
  EXPECT_TRUE(Eventually([&] { return !GetContent("c"); }));
  EXPECT_EQ(driver_->Count("DeleteSnapshot"), 0);
}

TEST_F(ContentControllerTest, AsksUntilTheSnapshotIsReady) {
  driver_->SetSnapshotsReady(false);
  Start();
  PutContent();
  ASSERT_TRUE(AwaitStatus([](const ContentStatus& status) { return status.handle.has_value(); }));
  EXPECT_FALSE(GetContent("c")->IsReady());
  driver_->SetSnapshotsReady(true);
  EXPECT_TRUE(AwaitContentReady());
}

TEST_F(ContentControllerTest, AnAnswerWithoutAnIdIsAnError) {
  driver_->OnAnswer([](google::protobuf::Message& reply) {
    if (auto* taken = dynamic_cast<v1::CreateSnapshotResponse*>(&reply)) {
      taken->mutable_snapshot()->clear_snapshot_id();
    }
  });
  Start();
  PutContent();
  EXPECT_TRUE(AwaitStatus([](const ContentStatus& status) {
    return status.error && status.error->message.find("without a snapshot id") != std::string::npos;
  }));
  // It may have taken one.
  EXPECT_TRUE(IsBeingCreated());
}

TEST_F(ContentControllerTest, WhatCannotBeAskedFor) {
  Start();
  PutContent("", "disk.example.com", "none");
  EXPECT_TRUE(AwaitStatus([](const ContentStatus& status) {
    return status.error && status.error->message.find(R"("none" not found)") != std::string::npos;
  }));
  EXPECT_EQ(driver_->Count("CreateSnapshot"), 0);
  EXPECT_FALSE(IsBeingCreated());
  DeleteContent();
  EXPECT_TRUE(Eventually([&] { return !GetContent("c"); }));
}

TEST_F(ContentControllerTest, ADeletionThatFailsIsTriedAgain) {
  Start();
  PutContent();
  ASSERT_TRUE(AwaitContentReady());
  ASSERT_TRUE(Eventually([&] { return !IsBeingCreated(); }));
  driver_->Fail("DeleteSnapshot", 9, "in use", 3);
  DeleteContent();
  EXPECT_TRUE(Eventually([&] { return !GetContent("c"); }));
  EXPECT_TRUE(Eventually([&] { return HasEvent("SnapshotDeleteError", "Failed to delete snapshot"); }));
  EXPECT_GE(driver_->Count("DeleteSnapshot"), 4);
  EXPECT_THAT(driver_->Snapshots(), IsEmpty());
}

TEST_F(ContentControllerTest, ASnapshotThatTheDriverDoesNotHave) {
  Start();
  Create(SnapshotContentRow(), R"({"metadata":{"name":"c"},"spec":{"driver":"disk.example.com",
      "deletionPolicy":"Retain","source":{"snapshotHandle":"none"},
      "volumeSnapshotRef":{"name":"s","namespace":"default"}}})");
  EXPECT_TRUE(AwaitStatus([](const ContentStatus& status) {
    return status.error &&
           status.error->message.find("can not find snapshot for snapshotID none") != std::string::npos;
  }));
  driver_->AddSnapshot("none", 1);
  EXPECT_TRUE(AwaitContentReady());
  EXPECT_FALSE(GetContent("c")->status->error);
}

// Without LIST_SNAPSHOTS nothing can be known of a given snapshot.
TEST_F(ContentControllerTest, ADriverThatListsNothing) {
  driver_->SetCapabilities({"CREATE_DELETE_SNAPSHOT"});
  Start();
  Create(SnapshotContentRow(), R"({"metadata":{"name":"c"},"spec":{"driver":"disk.example.com",
      "deletionPolicy":"Retain","source":{"snapshotHandle":"h"},
      "volumeSnapshotRef":{"name":"s","namespace":"default"}}})");
  EXPECT_TRUE(AwaitContentReady());
  EXPECT_EQ(driver_->Count("ListSnapshots"), 0);
}

TEST_F(ContentControllerTest, ADriverWithoutSnapshots) {
  driver_->SetCapabilities({"CREATE_DELETE_VOLUME"});
  Start();
  PutContent();
  EXPECT_TRUE(AwaitStatus([](const ContentStatus& status) {
    return status.error && status.error->message.find("does not support") != std::string::npos;
  }));
  EXPECT_EQ(driver_->Count("CreateSnapshot"), 0);
}

}  // namespace
}  // namespace keelson::csi::controller
