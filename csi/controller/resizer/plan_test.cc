#include "csi/controller/resizer/plan.h"

#include <gtest/gtest.h>

#include "lib/api/codec/codec.h"

namespace keelson::csi::controller {
namespace {

struct Case {
  const char *asked, *volume, *allocated, *state;
  bool control_plane, failed;
  const char* size;  // empty: nothing to do
};

TEST(ResizerPlanTest, Sizes) {
  const Case cases[] = {
      {"2Gi", "1Gi", "", "", true, false, "2Gi"},
      // The user asks for less than before, or more: what may be under way comes first.
      {"2Gi", "1Gi", "5Gi", kControllerResizeInProgress, true, false, "5Gi"},
      {"2Gi", "1Gi", "5Gi", kControllerResizeInProgress, true, true, "2Gi"},
      {"2Gi", "1Gi", "5Gi", kControllerResizeInfeasible, true, false, "2Gi"},
      {"9Gi", "5Gi", "5Gi", kNodeResizePending, true, false, ""},
      {"9Gi", "4Gi", "5Gi", kNodeResizeInProgress, true, false, "5Gi"},
      {"9Gi", "4Gi", "5Gi", kNodeResizeInfeasible, true, false, "5Gi"},
      // The volume is large enough.
      {"2Gi", "2Gi", "2Gi", kNodeResizePending, true, false, ""},
      {"2Gi", "2Gi", "2Gi", kNodeResizeInProgress, true, false, ""},
      {"2Gi", "5Gi", "5Gi", kNodeResizeInfeasible, true, false, "5Gi"},
      {"2Gi", "5Gi", "5Gi", kNodeResizeInfeasible, false, false, "2Gi"},
      {"2Gi", "5Gi", "5Gi", kControllerResizeInProgress, true, false, "5Gi"},
      {"2Gi", "2Gi", "2Gi", "", true, false, "2Gi"},
      {"2Gi", "2Gi", "", "", true, false, "2Gi"},
  };
  for (const Case& c : cases) {
    Claim claim;
    Volume volume;
    (*claim.mutable_spec()->mutable_resources()->mutable_requests())["storage"].set_string(c.asked);
    (*volume.mutable_spec()->mutable_capacity())["storage"].set_string(c.volume);
    if (*c.allocated) {
      (*claim.mutable_status()->mutable_allocated_resources())["storage"].set_string(c.allocated);
    }
    if (*c.state) (*claim.mutable_status()->mutable_allocated_resource_statuses())["storage"] = c.state;
    const auto plan = PlanExpansion(claim, volume, c.control_plane, c.failed);
    SCOPED_TRACE(std::string(c.asked) + " " + c.volume + " " + c.allocated + " " + c.state);
    ASSERT_EQ(plan.has_value(), *c.size != '\0');
    if (!plan) continue;
    EXPECT_EQ(plan->size.ToString(), c.size);
    EXPECT_EQ(plan->new_size, std::string(c.allocated) != c.size);
  }
}

TEST(ResizerPlanTest, Statuses) {
  corev1::PersistentVolumeClaimStatus status;
  auto& other = *status.add_conditions();
  other.set_type("Else");
  other.set_status("True");
  metav1::Time now;
  now.set_seconds(7);
  MarkInProgress(status, {*api::Amount::Parse("2Gi"), true}, now);
  EXPECT_EQ(status.conditions(1).type(), "Resizing");
  EXPECT_EQ(status.allocated_resource_statuses().at("storage"), kControllerResizeInProgress);
  now.set_seconds(8);
  MarkInProgress(status, {*api::Amount::Parse("2Gi"), false}, now);
  ASSERT_EQ(status.conditions_size(), 2);
  EXPECT_EQ(status.conditions(1).last_transition_time().seconds(), 7);
  MarkFailed(status, true, "no", now);
  ASSERT_EQ(status.conditions_size(), 2);
  EXPECT_EQ(status.conditions(1).type(), "ControllerResizeError");
  EXPECT_EQ(status.conditions(1).message(), "failed to expand pvc with no");
  EXPECT_EQ(status.allocated_resource_statuses().at("storage"), kControllerResizeInfeasible);
  MarkNodePending(status, now);
  EXPECT_EQ(status.conditions(1).type(), "FileSystemResizePending");
  EXPECT_EQ(status.allocated_resource_statuses().at("storage"), kNodeResizePending);
  MarkFinished(status, *api::Amount::Parse("2Gi"), now);
  ASSERT_EQ(status.conditions_size(), 1);
  EXPECT_EQ(status.conditions(0).type(), "Else");
  EXPECT_TRUE(status.allocated_resource_statuses().empty());
  EXPECT_EQ(StorageOf(status.capacity()).ToString(), "2Gi");
}

}  // namespace
}  // namespace keelson::csi::controller
