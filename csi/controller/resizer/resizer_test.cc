#include "csi/controller/resizer/resizer.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>

#include "csi/controller/testing/controller_test.h"

namespace keelson::csi::controller {
namespace {

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
  // Of one reading: the next attempt replaces it.
  bool AwaitCondition(const std::string& type, const std::string& state, const std::string& text) {
    return Eventually([&] {
      const auto status = Present().status();
      const auto found = status.allocated_resource_statuses().find("storage");
      return status.conditions_size() == 1 && status.conditions(0).type() == type &&
             status.conditions(0).message().find(text) != std::string::npos &&
             found != status.allocated_resource_statuses().end() && found->second == state;
    });
  }
  // What the kubelet does when it has grown the file system.
  void FinishOnNode(const std::string& size) {
    auto changed =
        client::UpdateWithRetry<Claim>(api_, "default", "c", "status", [&](Claim& claim) -> Result<bool> {
          MarkFinished(*claim.mutable_status(), *api::Amount::Parse(size), {});
          return true;
        });
    ASSERT_TRUE(changed);
  }
  bool AwaitNoMark() {
    return Eventually([&] { return Get<Volume>("", "v")->metadata().annotations().count(kPreResize) == 0; });
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
  ASSERT_TRUE(AwaitCondition("FileSystemResizePending", kNodeResizePending, "(re-)start a pod"));
  EXPECT_EQ(StorageOf(Get<Volume>("", "v")->spec().capacity()).ToString(), "3Gi");
  EXPECT_EQ(Get<Volume>("", "v")->metadata().annotations().at(kPreResize), "1Gi");
  EXPECT_TRUE(Eventually([&] { return HasEvent("FileSystemResizeRequired", "Require file system resize"); }));
  FinishOnNode("3Gi");
  EXPECT_TRUE(AwaitNoMark());
  EXPECT_EQ(driver_->Count("ControllerExpandVolume"), 1);
}

// The caches of claims and of volumes follow the API each by itself.
TEST_F(ResizerTest, AVolumeThatTheCacheShowsAsItWasIsNotExpandedAgain) {
  PutVolume("Filesystem");
  PutClaim("3Gi");
  std::atomic<bool> behind = true;
  fake_->SetInterceptor([&](const client::ApiRequest& request) -> std::optional<Result<client::ApiResponse>> {
    const bool watch = request.target.find("/persistentvolumes?") != std::string::npos &&
                       request.target.find("watch=") != std::string::npos;
    if (!watch || !behind) return std::nullopt;
    return client::FakeApi::Refuse(Error(Code::kUnavailable, "later"));
  });
  Start();
  ASSERT_TRUE(Eventually([&] { return State() == kNodeResizePending; }));
  // An attempt on what the cache of claims had before ends with a conflict.
  EXPECT_TRUE(Eventually([&] { return controllers_.front()->Reconcile("default/c", {}).has_value(); }));
  EXPECT_EQ(driver_->Count("ControllerExpandVolume"), 1);
  EXPECT_EQ(State(), kNodeResizePending);
  // The mark shows after the claim has its size.
  FinishOnNode("3Gi");
  EXPECT_TRUE(Eventually([&] { return controllers_.front()->Reconcile("default/c", {}).has_value(); }));
  EXPECT_EQ(Get<Volume>("", "v")->metadata().annotations().count(kPreResize), 1U);
  behind = false;
  EXPECT_TRUE(AwaitNoMark());
  StopControllers();  // hooks use locals
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

TEST_F(ResizerTest, RecoversFromSizesThatTheNodeCannotGive) {
  driver_->SetCapabilities({});
  driver_->SetNodeExpand(true);
  PutVolume("Filesystem");
  PutClaim("9Gi");
  Start();
  ASSERT_TRUE(Eventually([&] { return State() == kNodeResizePending; }));
  const auto fail = [](Claim& claim) -> Result<bool> {
    (*claim.mutable_status()->mutable_allocated_resource_statuses())["storage"] = kNodeResizeInfeasible;
    claim.mutable_status()->add_conditions()->set_type("NodeResizeError");
    return true;
  };
  Ask("5Gi");
  ASSERT_TRUE(client::UpdateWithRetry<Claim>(api_, "default", "c", "status", fail));
  ASSERT_TRUE(Eventually([&] { return State() == kNodeResizePending; }));
  EXPECT_EQ(StorageOf(Get<Volume>("", "v")->spec().capacity()).ToString(), "5Gi")
      << "what the node is to try";
  EXPECT_EQ(StorageOf(Present().status().allocated_resources()).ToString(), "5Gi");
  FinishOnNode("5Gi");
  EXPECT_TRUE(AwaitNoMark());
}

TEST_F(ResizerTest, RecoversFromSizesThatAreTooLarge) {
  PutVolume("Block");
  PutClaim("100Gi");
  driver_->Fail("ControllerExpandVolume", grpc::StatusCode::OUT_OF_RANGE, "too large", 1000000);
  Start();
  ASSERT_TRUE(AwaitCondition("ControllerResizeError", kControllerResizeInfeasible,
                             "code = OutOfRange desc = too large"));
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
  EXPECT_TRUE(
      Eventually([&] { return HasEvent("VolumeResizeFailed", "less than the 3221225472 asked for"); }));
  StopControllers();  // hooks use locals
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
