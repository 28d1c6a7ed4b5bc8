#include "csi/controller/resizer/resizer.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>

#include "csi/controller/testing/controller_test.h"

namespace keelson::csi::controller {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kPreResize[] = "volume.alpha.kubernetes.io/pre-resize-capacity";

class ResizerTest : public ControllerTest {
 protected:
  void SetUp() override {
    ControllerTest::SetUp();
    driver_->SetCapabilities({"EXPAND_VOLUME"});
    driver_->AddVolume("h", int64_t{1} << 30);
  }
  void Start() {
    StartControllers([&](const Environment& environment) {
      controllers_.push_back(std::make_unique<Resizer>(environment));
    });
  }
  void PutVolume(const std::string& mode) {
    Put<Volume>(
        R"({"metadata":{"name":"v","uid":"vu"},"spec":{"accessModes":["ReadWriteOnce"],"volumeMode":")" +
        mode +
        R"(","capacity":{"storage":"1Gi"},"claimRef":{"uid":"cu","name":"c","namespace":"default"},
        "csi":{"driver":"disk.example.com","volumeHandle":"h"}}})");
  }
  void PutClaim(const std::string& asked) {
    Put<Claim>(R"({"metadata":{"name":"c","namespace":"default","uid":"cu"},"spec":{"volumeName":"v",
        "resources":{"requests":{"storage":")" +
               asked + R"("}}},"status":{"phase":"Bound","capacity":{"storage":"1Gi"}}})");
  }
  void Ask(const std::string& size) {
    auto changed =
        client::UpdateWithRetry<Claim>(api_, "default", "c", "", [&](Claim& claim) -> Result<bool> {
          (*claim.mutable_spec()->mutable_resources()->mutable_requests())["storage"].set_string(size);
          return true;
        });
    ASSERT_TRUE(changed);
  }
  Claim Present() { return *Get<Claim>("default", "c"); }
  std::string State() {
    const Claim claim = Present();
    const auto& states = claim.status().allocated_resource_statuses();
    const auto found = states.find("storage");
    return found == states.end() ? "" : found->second;
  }
  bool AwaitCapacity(const std::string& size) {
    return Eventually([&] { return StorageOf(Present().status().capacity()).ToString() == size; });
  }
};

TEST_F(ResizerTest, ExpandsADevice) {
  PutVolume("Block");
  PutClaim("3Gi");
  Start();
  ASSERT_TRUE(AwaitCapacity("3Gi"));
  EXPECT_EQ(StorageOf(Get<Volume>("", "v")->spec().capacity()).ToString(), "3Gi");
  EXPECT_EQ(State(), "");
  EXPECT_EQ(Present().status().conditions_size(), 0);
  EXPECT_EQ(StorageOf(Present().status().allocated_resources()).ToString(), "3Gi");
  EXPECT_TRUE(Eventually([&] { return HasEvent("VolumeResizeSuccessful", "Resize volume succeeded"); }));
  EXPECT_TRUE(HasEvent("Resizing", "External resizer is resizing volume v"));
}

TEST_F(ResizerTest, LeavesTheFileSystemToTheNode) {
  PutVolume("Filesystem");
  PutClaim("3Gi");
  Start();
  ASSERT_TRUE(Eventually([&] { return State() == kNodeResizePending; }));
  EXPECT_EQ(StorageOf(Get<Volume>("", "v")->spec().capacity()).ToString(), "3Gi");
  EXPECT_EQ(Get<Volume>("", "v")->metadata().annotations().at(kPreResize), "1Gi");
  EXPECT_EQ(Present().status().conditions(0).type(), "FileSystemResizePending");
  EXPECT_TRUE(Eventually([&] { return HasEvent("FileSystemResizeRequired", "Require file system resize"); }));
  // The kubelet has finished.
  Claim claim = Present();
  MarkFinished(*claim.mutable_status(), *api::Amount::Parse("3Gi"), {});
  fake_->Put(claim);
  EXPECT_TRUE(
      Eventually([&] { return Get<Volume>("", "v")->metadata().annotations().count(kPreResize) == 0; }));
  EXPECT_EQ(driver_->Count("ControllerExpandVolume"), 1);
}

TEST_F(ResizerTest, AsksOnlyTheNodeOfDriversWithoutControllerExpansion) {
  driver_->SetCapabilities({});
  driver_->SetNodeExpand(true);
  PutVolume("Filesystem");
  PutClaim("3Gi");
  Start();
  ASSERT_TRUE(Eventually([&] { return State() == kNodeResizePending; }));
  EXPECT_EQ(StorageOf(Get<Volume>("", "v")->spec().capacity()).ToString(), "3Gi");
  EXPECT_THAT(driver_->Calls(), IsEmpty());
}

TEST_F(ResizerTest, RecoversFromSizesThatAreTooLarge) {
  PutVolume("Block");
  PutClaim("100Gi");
  driver_->Fail("ControllerExpandVolume", grpc::StatusCode::OUT_OF_RANGE, "too large", 1000000);
  Start();
  ASSERT_TRUE(Eventually([&] { return State() == kControllerResizeInfeasible; }));
  EXPECT_EQ(Present().status().conditions(0).type(), "ControllerResizeError");
  EXPECT_THAT(Present().status().conditions(0).message(), HasSubstr("code = OutOfRange desc = too large"));
  EXPECT_EQ(StorageOf(Present().status().allocated_resources()).ToString(), "100Gi");
  EXPECT_TRUE(
      Eventually([&] { return HasEvent("VolumeResizeFailed", "by resizer \"disk.example.com\" failed"); }));
  driver_->Fail("ControllerExpandVolume", 0, "", 0);
  Ask("2Gi");
  ASSERT_TRUE(AwaitCapacity("2Gi"));
  EXPECT_EQ(driver_->Volumes().at("h"), int64_t{2} << 30);
}

// The driver may still be at work on the first size.
TEST_F(ResizerTest, FinishesWhatMayBeUnderWay) {
  PutVolume("Block");
  PutClaim("5Gi");
  driver_->Fail("ControllerExpandVolume", grpc::StatusCode::DEADLINE_EXCEEDED, "late", 1000000);
  Start();
  ASSERT_TRUE(Eventually([&] { return driver_->Count("ControllerExpandVolume") > 1; }));
  Ask("2Gi");
  driver_->Fail("ControllerExpandVolume", 0, "", 0);
  ASSERT_TRUE(AwaitCapacity("5Gi"));
}

TEST_F(ResizerTest, WaitsForPodsOfDriversThatExpandOffline) {
  Put<corev1::Pod>(R"({"metadata":{"name":"p","namespace":"default"},"spec":{"volumes":[{"name":"d",
      "persistentVolumeClaim":{"claimName":"c"}}]},"status":{"phase":"Running"}})");
  PutVolume("Block");
  PutClaim("3Gi");
  driver_->Fail("ControllerExpandVolume", grpc::StatusCode::FAILED_PRECONDITION, "in use", 1);
  Start();
  ASSERT_TRUE(Eventually([&] {
    return HasEvent("VolumeResizeFailed",
                    "Unable to expand default/c because CSI driver disk.example.com only supports "
                    "offline expansion and volume is currently in-use");
  }));
  EXPECT_EQ(driver_->Count("ControllerExpandVolume"), 1);
  ASSERT_TRUE(api_.Delete<corev1::Pod>("default", "p", {.grace_period_seconds = 0}));
  EXPECT_TRUE(AwaitCapacity("3Gi"));
}

TEST_F(ResizerTest, DoesNotBelieveDriversThatDoTooLittle) {
  PutVolume("Block");
  PutClaim("3Gi");
  std::atomic<int> answers = 0;
  driver_->OnAnswer([&](google::protobuf::Message& reply) {
    auto* expanded = google::protobuf::DynamicCastToGenerated<v1::ControllerExpandVolumeResponse>(&reply);
    if (expanded && answers++ == 0) expanded->set_capacity_bytes(1);
  });
  Start();
  ASSERT_TRUE(AwaitCapacity("3Gi"));
  EXPECT_TRUE(HasEvent("VolumeResizeFailed", "less than the 3221225472 asked for"));
}

// Killed between the driver's answer and the objects.
TEST_F(ResizerTest, GoesOnAfterARestart) {
  PutVolume("Block");
  PutClaim("3Gi");
  fake_->SetInterceptor([&](const client::ApiRequest& request) -> std::optional<Result<client::ApiResponse>> {
    if (request.method != "PUT" || request.target.find("/persistentvolumes/v") == std::string::npos) {
      return {};
    }
    return client::FakeApi::Refuse(Error(Code::kUnavailable, "away"));
  });
  Start();
  ASSERT_TRUE(Eventually([&] { return driver_->Count("ControllerExpandVolume") > 0; }));
  EXPECT_EQ(State(), kControllerResizeInProgress);
  StopControllers();
  fake_->SetInterceptor(nullptr);
  Start();
  EXPECT_TRUE(AwaitCapacity("3Gi"));
}

}  // namespace
}  // namespace keelson::csi::controller
