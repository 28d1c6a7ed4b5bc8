#include "csi/controller/modifier/modifier.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>

#include "csi/controller/testing/controller_test.h"

namespace keelson::csi::controller {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ModifierTest : public ControllerTest {
 protected:
  void SetUp() override {
    ControllerTest::SetUp();
    driver_->SetCapabilities({"MODIFY_VOLUME"});
    PutClass("silver", "1");
    PutClass("gold", "9");
    Put<Volume>(
        R"({"metadata":{"name":"v","uid":"vu"},"spec":{"volumeAttributesClassName":"silver","claimRef":{
        "uid":"cu","name":"c","namespace":"default"},"csi":{"driver":"disk.example.com","volumeHandle":"h"}}})");
    Put<Claim>(R"({"metadata":{"name":"c","namespace":"default","uid":"cu"},"spec":{"volumeName":"v",
        "volumeAttributesClassName":"silver"},"status":{"phase":"Bound","currentVolumeAttributesClassName":"silver"}})");
  }
  void PutClass(const std::string& name, const std::string& iops,
                const std::string& driver = "disk.example.com") {
    Put<storagev1::VolumeAttributesClass>(R"({"metadata":{"name":")" + name + R"("},"driverName":")" +
                                          driver + R"(","parameters":{"iops":")" + iops + R"("}})");
  }
  void Start() {
    StartControllers([&](const Environment& environment) {
      controllers_.push_back(std::make_unique<Modifier>(environment));
    });
  }
  void Ask(const std::string& name) {
    auto changed =
        client::UpdateWithRetry<Claim>(api_, "default", "c", "", [&](Claim& claim) -> Result<bool> {
          claim.mutable_spec()->set_volume_attributes_class_name(name);
          return true;
        });
    ASSERT_TRUE(changed);
  }
  corev1::PersistentVolumeClaimStatus Status() { return Get<Claim>("default", "c")->status(); }
  bool AwaitCurrent(const std::string& name) {
    return Eventually([&] {
      return Status().current_volume_attributes_class_name() == name && !Status().has_modify_volume_status();
    });
  }
  bool AwaitState(const std::string& state) {
    return Eventually([&] { return Status().modify_volume_status().status() == state; });
  }
};

TEST_F(ModifierTest, GivesAVolumeOtherAttributes) {
  Start();
  Ask("gold");
  ASSERT_TRUE(AwaitCurrent("gold"));
  EXPECT_EQ(Get<Volume>("", "v")->spec().volume_attributes_class_name(), "gold");
  EXPECT_EQ(Status().conditions_size(), 0);
  EXPECT_THAT(driver_->LastRequest("ControllerModifyVolume"), HasSubstr(R"(key: "iops" value: "9")"));
  EXPECT_TRUE(
      Eventually([&] { return HasEvent("VolumeModifySuccessful", "modified volume c with vac gold"); }));
  EXPECT_EQ(driver_->Count("ControllerModifyVolume"), 1);
}

TEST_F(ModifierTest, LeavesDriversAloneThatCannot) {
  driver_->SetCapabilities({"EXPAND_VOLUME"});
  Ask("gold");
  Start();
  EXPECT_TRUE(controllers_.front()->Reconcile("default/c", {}));
  EXPECT_EQ(Status().current_volume_attributes_class_name(), "silver");
  EXPECT_FALSE(Status().has_modify_volume_status());
  EXPECT_THAT(driver_->Calls(), IsEmpty());
}

TEST_F(ModifierTest, WaitsForTheClass) {
  Start();
  Ask("platinum");
  ASSERT_TRUE(AwaitState("Pending"));
  EXPECT_TRUE(Eventually([&] { return HasEvent("VolumeModifyFailed", "VAC platinum does not exist."); }));
  PutClass("platinum", "5", "else.example.com");
  EXPECT_TRUE(Eventually(
      [&] { return HasEvent("VolumeModifyFailed", "VAC platinum is for driver else.example.com"); }));
  EXPECT_EQ(driver_->Count("ControllerModifyVolume"), 0);
  PutClass("platinum", "5");
  EXPECT_TRUE(AwaitCurrent("platinum"));
}

TEST_F(ModifierTest, TakesARefusedWishBack) {
  driver_->Fail("ControllerModifyVolume", grpc::StatusCode::INVALID_ARGUMENT, "too fast", 1000000);
  Start();
  Ask("gold");
  // Of one reading: the next attempt begins with another condition.
  ASSERT_TRUE(Eventually([&] {
    const auto status = Status();
    return status.modify_volume_status().status() == "Infeasible" && status.conditions_size() == 1 &&
           status.conditions(0).message().find("code = InvalidArgument desc = too fast") != std::string::npos;
  }));
  Ask("silver");
  ASSERT_TRUE(AwaitCurrent("silver"));
  EXPECT_EQ(Status().conditions_size(), 0);
}

// It is not known which attributes the volume has, so the first wish comes to its end before the second.
TEST_F(ModifierTest, FinishesWhatMayBeUnderWay) {
  driver_->Fail("ControllerModifyVolume", grpc::StatusCode::DEADLINE_EXCEEDED, "late", 1000000);
  Start();
  Ask("gold");
  ASSERT_TRUE(Eventually([&] { return driver_->Count("ControllerModifyVolume") > 1; }));
  Ask("silver");
  StopControllers();
  driver_->Fail("ControllerModifyVolume", 0, "", 0);
  driver_->Calls();
  Start();
  ASSERT_TRUE(AwaitCurrent("silver"));
  // One of each wish; an informer that is behind may lead to another.
  EXPECT_GE(driver_->Calls().size(), 2U);
  EXPECT_EQ(Get<Volume>("", "v")->spec().volume_attributes_class_name(), "silver");
}

TEST_F(ModifierTest, TriesAgainAfterOtherErrors) {
  driver_->Fail("ControllerModifyVolume", grpc::StatusCode::INTERNAL, "no", 3);
  Start();
  Ask("gold");
  ASSERT_TRUE(AwaitCurrent("gold"));
  EXPECT_EQ(driver_->Count("ControllerModifyVolume"), 4);
}

}  // namespace
}  // namespace keelson::csi::controller
