#include "csi/controller/attacher/attacher.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>

#include "csi/controller/model/names.h"
#include "csi/controller/testing/controller_test.h"

namespace keelson::csi::controller {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kFinalizer[] = "external-attacher/disk.example.com";

class AttacherTest : public ControllerTest {
 protected:
  void SetUp() override {
    ControllerTest::SetUp();
    driver_->SetCapabilities({"PUBLISH_UNPUBLISH_VOLUME"});
    Put<storagev1::CSINode>(
        R"({"metadata":{"name":"n1"},"spec":{"drivers":[{"name":"disk.example.com","nodeID":"id-n1"}]}})");
    PutVolume("");
  }
  void PutVolume(const std::string& more) {
    Put<Volume>(R"({"metadata":{"name":"v","uid":"vu"},"spec":{"accessModes":["ReadWriteOnce"],
        "csi":{"driver":"disk.example.com","volumeHandle":"h","volumeAttributes":{"pool":"p1"})" +
                more + "}}}");
  }
  void Start(const std::string& node = "") {
    StartControllers(
        [&](const Environment& environment) {
          controllers_.push_back(std::make_unique<Attacher>(environment, "ext4"));
          controllers_.push_back(std::make_unique<AttachedVolumes>(environment));
        },
        node);
  }
  void PutAttachment(const std::string& name, const std::string& node = "n1",
                     const std::string& source = R"("persistentVolumeName":"v")",
                     const std::string& driver = "disk.example.com") {
    Put<VolumeAttachment>(R"({"metadata":{"name":")" + name + R"(","uid":"u-)" + name +
                          R"("},"spec":{"attacher":")" + driver + R"(","nodeName":")" + node +
                          R"(","source":{)" + source + "}}}");
  }
  bool AwaitAttached(const std::string& name) {
    return Eventually([&] { return Get<VolumeAttachment>("", name)->status().attached(); });
  }
  bool AwaitError(const std::string& name, const std::string& text) {
    return Eventually([&] {
      const auto status = Get<VolumeAttachment>("", name)->status();
      return (status.attach_error().message() + status.detach_error().message()).find(text) !=
             std::string::npos;
    });
  }
};

TEST_F(AttacherTest, AttachesAndDetaches) {
  Start();
  PutAttachment("a");
  ASSERT_TRUE(AwaitAttached("a"));
  auto attachment = *Get<VolumeAttachment>("", "a");
  EXPECT_EQ(attachment.status().attachment_metadata().at("device"), "/dev/x");
  EXPECT_THAT(attachment.metadata().finalizers(), ElementsAre(kFinalizer));
  EXPECT_EQ(attachment.metadata().annotations().at(kNodeId), "id-n1");
  EXPECT_THAT(Get<Volume>("", "v")->metadata().finalizers(), ElementsAre(kFinalizer));
  EXPECT_THAT(driver_->Published(), ElementsAre("h@id-n1"));
  const std::string request = driver_->LastRequest("ControllerPublishVolume");
  EXPECT_THAT(request, HasSubstr("SINGLE_NODE_WRITER"));
  EXPECT_THAT(request, HasSubstr(R"(fs_type: "ext4")"));
  EXPECT_THAT(request, HasSubstr(R"(key: "pool")"));
  // The volume stays until nothing names it.
  ASSERT_TRUE(api_.Delete<Volume>("", "v"));
  ASSERT_TRUE(api_.Delete<VolumeAttachment>("", "a"));
  EXPECT_TRUE(Eventually([&] { return !Get<VolumeAttachment>("", "a"); }));
  EXPECT_TRUE(Eventually([&] { return !Get<Volume>("", "v"); }));
  EXPECT_THAT(driver_->Published(), IsEmpty());
}

TEST_F(AttacherTest, MarksAttachmentsOfDriversThatDoNotAttach) {
  driver_->SetCapabilities({});
  Start();
  PutAttachment("a");
  ASSERT_TRUE(AwaitAttached("a"));
  EXPECT_EQ(Get<VolumeAttachment>("", "a")->metadata().finalizers_size(), 0);
  EXPECT_THAT(driver_->Calls(), IsEmpty());
}

TEST_F(AttacherTest, LeavesOthersAlone) {
  Start("n1");
  PutAttachment("foreign", "n1", R"("persistentVolumeName":"v")", "else.example.com");
  PutAttachment("elsewhere", "n2");
  PutAttachment("ours");
  ASSERT_TRUE(AwaitAttached("ours"));
  EXPECT_THAT(driver_->Calls(), ElementsAre("ControllerPublishVolume h@id-n1"));
}

TEST_F(AttacherTest, TellsErrorsAndTriesAgain) {
  Start();
  driver_->Fail("ControllerPublishVolume", grpc::StatusCode::RESOURCE_EXHAUSTED, "no slot", 1000000);
  PutAttachment("a");
  ASSERT_TRUE(AwaitError("a", "rpc error: code = ResourceExhausted desc = no slot"));
  driver_->Fail("ControllerPublishVolume", 0, "", 0);
  ASSERT_TRUE(AwaitAttached("a"));
  EXPECT_FALSE(Get<VolumeAttachment>("", "a")->status().has_attach_error());
  driver_->Fail("ControllerUnpublishVolume", grpc::StatusCode::INTERNAL, "stuck", 1000000);
  ASSERT_TRUE(api_.Delete<VolumeAttachment>("", "a"));
  ASSERT_TRUE(AwaitError("a", "rpc error: code = Internal desc = stuck"));
  driver_->Fail("ControllerUnpublishVolume", 0, "", 0);
  EXPECT_TRUE(Eventually([&] { return !Get<VolumeAttachment>("", "a"); }));
}

// What may have been attached has to be detached.
TEST_F(AttacherTest, DetachesAfterAnUncertainAttach) {
  Start();
  driver_->Fail("ControllerPublishVolume", grpc::StatusCode::DEADLINE_EXCEEDED, "late", 1000000, true);
  PutAttachment("a");
  ASSERT_TRUE(AwaitError("a", "DeadlineExceeded"));
  ASSERT_TRUE(api_.Delete<VolumeAttachment>("", "a"));
  EXPECT_TRUE(Eventually([&] { return !Get<VolumeAttachment>("", "a"); }));
  EXPECT_THAT(driver_->Published(), IsEmpty());
}

TEST_F(AttacherTest, DetachesFromNodesThatAreGone) {
  Start();
  PutAttachment("a");
  ASSERT_TRUE(AwaitAttached("a"));
  ASSERT_TRUE(api_.Delete<storagev1::CSINode>("", "n1"));
  ASSERT_TRUE(api_.Delete<VolumeAttachment>("", "a"));
  EXPECT_TRUE(Eventually([&] { return !Get<VolumeAttachment>("", "a"); }));
  EXPECT_THAT(driver_->Published(), IsEmpty());
}

TEST_F(AttacherTest, RefusesWhatCannotBeAttached) {
  Start();
  PutAttachment("nowhere", "n9");
  PutAttachment("missing", "n1", R"("persistentVolumeName":"x")");
  EXPECT_TRUE(AwaitError("nowhere", "CSINode n9 does not exist"));
  EXPECT_TRUE(AwaitError("missing", R"(persistentvolume "x" not found)"));
  EXPECT_EQ(Get<VolumeAttachment>("", "nowhere")->metadata().finalizers_size(), 0);
  // Without the finalizer it goes at once.
  ASSERT_TRUE(api_.Delete<VolumeAttachment>("", "nowhere"));
  EXPECT_FALSE(Get<VolumeAttachment>("", "nowhere"));
  EXPECT_THAT(driver_->Calls(), IsEmpty());
}

TEST_F(AttacherTest, SendsSecretsAndReadOnly) {
  driver_->SetCapabilities({"PUBLISH_UNPUBLISH_VOLUME", "PUBLISH_READONLY", "SINGLE_NODE_MULTI_WRITER"});
  PutVolume(R"(,"readOnly":true,"controllerPublishSecretRef":{"name":"s","namespace":"storage"})");
  Put<corev1::Secret>(R"({"metadata":{"name":"s","namespace":"storage"},"data":{"key":"c2VjcmV0"}})");
  Start();
  PutAttachment("a");
  ASSERT_TRUE(AwaitAttached("a"));
  const std::string request = driver_->LastRequest("ControllerPublishVolume");
  EXPECT_THAT(request, HasSubstr("readonly: true"));
  EXPECT_THAT(request, HasSubstr("secret"));
  EXPECT_THAT(request, HasSubstr("SINGLE_NODE_MULTI_WRITER"));
}

TEST_F(AttacherTest, GoesOnAfterARestart) {
  driver_->Fail("ControllerPublishVolume", grpc::StatusCode::UNAVAILABLE, "away", 1000000, true);
  Start();
  PutAttachment("a");
  ASSERT_TRUE(Eventually([&] { return !driver_->Published().empty(); }));
  StopControllers();
  driver_->Fail("ControllerPublishVolume", 0, "", 0);
  Start();
  ASSERT_TRUE(AwaitAttached("a"));
}

}  // namespace
}  // namespace keelson::csi::controller
