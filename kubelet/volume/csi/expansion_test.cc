// Growth of volumes by NodeExpandVolume, and what the claim's status shows of it.
#include "kubelet/volume/expansion/expansion.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "kubelet/volume/csi/testing/csi_test.h"

namespace keelson::kubelet::csi {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int kInvalidArgument = 3, kPermissionDenied = 7, kFailedPrecondition = 9, kInternal = 13,
              kUnavailable = 14;

class CsiExpansionTest : public CsiTest {
 protected:
  void SetUp() override {
    CsiTest::SetUp();
    driver_->SetCapabilities({"STAGE_UNSTAGE_VOLUME", "EXPAND_VOLUME"});
  }
  void InState(const std::string& state, const std::string& asked = "2Gi") {
    Grow(R"(,"allocatedResources":{"storage":"2Gi"},"allocatedResourceStatuses":{"storage":")" + state +
             R"("},"conditions":[{"type":"FileSystemResizePending","status":"True"}])",
         asked);
  }
  const corev1::PersistentVolumeClaimStatus& Status() {
    return objects_.Map<corev1::PersistentVolumeClaim>().at("n/c")->status();
  }
  std::string State() {
    const auto it = Status().allocated_resource_statuses().find("storage");
    return it == Status().allocated_resource_statuses().end() ? "" : it->second;
  }
  std::string Size() { return Status().capacity().at("storage").string(); }
  std::string Conditions() {
    std::string out;
    for (const auto& condition : Status().conditions()) {
      out += condition.type() + (condition.message().empty() ? "" : ": " + condition.message()) + "; ";
    }
    return out;
  }
  int Expansions() {
    const Strings calls = driver_->Calls();
    return static_cast<int>(std::count(calls.begin(), calls.end(), "expand vol-1"));
  }
};

TEST_F(CsiExpansionTest, GrowsWhenTheDriverCan) {
  Grow();
  driver_->SetCapabilities({"STAGE_UNSTAGE_VOLUME"});
  ASSERT_EQ(Problem(Claiming()), "");
  EXPECT_THAT(objects_.expanded, IsEmpty()) << "the driver does not grow volumes on nodes";
  driver_->SetCapabilities({"STAGE_UNSTAGE_VOLUME", "EXPAND_VOLUME"});
  driver_->Calls();
  driver_->Fail("NodeExpandVolume", kInternal, "no room");
  ASSERT_EQ(Problem(Claiming()), "") << "the pod has its volume";
  const std::string told =
      "VolumeResizeFailed: NodeExpandVolume.NodeExpandVolume failed for volume \"pv-1\" : "
      "Expander.NodeExpand "
      "failed to expand the volume : rpc error: code = Internal desc = no room";
  EXPECT_THAT(events_, ElementsAre(told));
  EXPECT_TRUE(manager_->RetriesExpansion("u"));
  ASSERT_EQ(Problem(Claiming()), "");
  EXPECT_THAT(events_, ElementsAre(told)) << "once";
  EXPECT_EQ(Expansions(), 1) << "again after a wait";
  clock_.Advance(std::chrono::milliseconds(500));
  ASSERT_EQ(Problem(Claiming()), "");
  EXPECT_THAT(driver_->LastRequest("NodeExpandVolume"),
              AllOf(HasSubstr("required_bytes: 2147483648"), HasSubstr("volume_path: \"" + Target() + "\""),
                    HasSubstr("staging_target_path: \"" + Staging() + "\"")));
  EXPECT_EQ(objects_.expanded, Strings{"c"});
  EXPECT_FALSE(manager_->RetriesExpansion("u"));
  EXPECT_EQ(events_.back(),
            "FileSystemResizeSuccessful: MountVolume.NodeExpandVolume succeeded for volume \"pv-1\" node-1");
}

TEST_F(CsiExpansionTest, APodStartsWithAVolumeThatHasGrown) {
  InState("NodeResizePending");
  driver_->Fail("NodeExpandVolume", kUnavailable, "gone");
  EXPECT_EQ(
      Problem(Claiming()),
      "MountVolume.Setup failed while expanding volume for volume \"pv-1\" : Expander.NodeExpand failed to "
      "expand the volume : rpc error: code = Unavailable desc = gone");
  EXPECT_EQ(State(), "NodeResizeInProgress") << "the driver may be at work";
  EXPECT_EQ(Conditions(), "FileSystemResizePending; ");
  clock_.Advance(std::chrono::milliseconds(500));
  ASSERT_EQ(Problem(Claiming()), "");
  EXPECT_EQ(State(), "");
  EXPECT_EQ(Size(), "2Gi");
  EXPECT_EQ(Conditions(), "");
}

TEST_F(CsiExpansionTest, ASecretGoesWithTheCall) {
  Bind(R"(,"nodeExpandSecretRef":{"namespace":"s","name":"expand"})");
  InState("NodeResizePending");
  EXPECT_THAT(Problem(Claiming()), HasSubstr("fetching NodeExpandSecretRef s/expand failed"));
  EXPECT_EQ(State(), "NodeResizeInProgress") << "nothing has failed for good";
  EXPECT_EQ(Conditions(), "FileSystemResizePending; ");
  objects_.Put<corev1::Secret>(R"({"metadata":{"name":"expand","namespace":"s"},"data":{"a":"b25l"}})");
  clock_.Advance(std::chrono::milliseconds(500));
  ASSERT_EQ(Problem(Claiming()), "");
  EXPECT_THAT(driver_->LastRequest("NodeExpandVolume"), HasSubstr("secrets { key: \"a\" value: \"one\" }"));
}

TEST_F(CsiExpansionTest, ASizeThatTheNodeCannotGiveIsTheResizersMatter) {
  ASSERT_EQ(Problem(Claiming()), "");
  InState("NodeResizePending");
  Restart();
  driver_->Fail("NodeExpandVolume", kInvalidArgument, "too large", 100);
  EXPECT_NE(Problem(Claiming()), "");
  EXPECT_EQ(State(), "NodeResizeInfeasible");
  EXPECT_EQ(
      Conditions(),
      "FileSystemResizePending; NodeResizeError: failed to expand pvc with Expander.NodeExpand failed to "
      "expand the volume : rpc error: code = InvalidArgument desc = too large; ");
  driver_->Calls();
  clock_.Advance(std::chrono::minutes(3));
  EXPECT_EQ(Problem(Claiming()), "") << "the volume is one to use";
  EXPECT_EQ(Expansions(), 0) << "until the resizer has decided";
  EXPECT_FALSE(manager_->RetriesExpansion("u"));
}

TEST_F(CsiExpansionTest, AClaimThatAsksForLessAfterAFailureGetsAnotherSize) {
  ASSERT_EQ(Problem(Claiming()), "");
  Restart();
  InState("NodeResizePending");
  driver_->Fail("NodeExpandVolume", kPermissionDenied, "no", 100);
  EXPECT_NE(Problem(Claiming()), "");
  EXPECT_EQ(State(), "NodeResizeInProgress");
  EXPECT_THAT(Conditions(), HasSubstr("NodeResizeError: failed to expand pvc with"));
  InState("NodeResizeInProgress", "1536Mi");
  clock_.Advance(std::chrono::minutes(3));
  EXPECT_NE(Problem(Claiming()), "");
  EXPECT_EQ(State(), "NodeResizeInfeasible") << "failed twice, and is not asked for any more";
}

TEST_F(CsiExpansionTest, ADriverThatGrowsNoVolumesInUseIsNotAskedAgain) {
  InState("NodeResizePending");
  driver_->Fail("NodeExpandVolume", kFailedPrecondition, "in use", 100);
  ASSERT_EQ(Problem(Claiming()), "") << "the volume is one to use";
  EXPECT_EQ(State(), "NodeResizeInProgress");
  EXPECT_THAT(Conditions(), HasSubstr("NodeResizeError"));
  clock_.Advance(std::chrono::minutes(3));
  ASSERT_EQ(Problem(Claiming()), "");
  EXPECT_EQ(Expansions(), 1);
  ASSERT_TRUE(Remove());
  driver_->Fail("NodeExpandVolume", kFailedPrecondition, "", 0);
  ASSERT_EQ(Problem(Claiming("next")), "");
  EXPECT_EQ(Size(), "2Gi");
}

// The resizer may have given the volume more than the claim asks for by now, or less.
TEST_F(CsiExpansionTest, TheVolumesSizeCountsNotTheClaims) {
  for (const char* asked : {"1Gi", "1536Mi", "5Gi"}) {
    SCOPED_TRACE(asked);
    InState("NodeResizePending", asked);
    ASSERT_EQ(Problem(Claiming()), "");
    EXPECT_EQ(Size(), "2Gi");
    ASSERT_TRUE(Remove());
  }
}

TEST_F(CsiExpansionTest, AVolumeOfManyNodesGrowsOnEach) {
  Bind("", R"(,"accessModes":["ReadWriteMany"])");
  ASSERT_EQ(Problem(Claiming()), "");
  objects_.Put<corev1::PersistentVolumeClaim>(
      R"({"metadata":{"name":"c","namespace":"n","uid":"cu"},"spec":{"volumeName":"pv-1",
          "resources":{"requests":{"storage":"3Gi"}}},
          "status":{"phase":"Bound","capacity":{"storage":"3Gi"},"allocatedResources":{"storage":"3Gi"}}})");
  objects_.Put<corev1::PersistentVolume>(
      R"({"metadata":{"name":"pv-1"},"spec":{"claimRef":{"uid":"cu"},"capacity":{"storage":"3Gi"},
          "accessModes":["ReadWriteMany"],"csi":{"driver":"disk.example.com","volumeHandle":"vol-1"}}})");
  driver_->Calls();
  ASSERT_EQ(Problem(Claiming()), "");
  ASSERT_EQ(Problem(Claiming("two")), "");
  EXPECT_EQ(Expansions(), 1) << "another node has written the claim";
  EXPECT_THAT(objects_.expanded, IsEmpty());
}

}  // namespace
}  // namespace keelson::kubelet::csi
