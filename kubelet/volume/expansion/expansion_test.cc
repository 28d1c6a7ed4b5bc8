#include "kubelet/volume/expansion/expansion.h"

#include <gtest/gtest.h>

#include "lib/api/codec/codec.h"

namespace keelson::kubelet {
namespace {

TEST(PlanGrowth, ByTheStateOfTheClaim) {
  struct Case {
    const char *what, *status, *capacity, *known;
    Growth growth;
  };
  const char* const allocated = R"("allocatedResources":{"storage":"2Gi"},"capacity":{"storage":"1Gi"})";
  const auto in = [&](const char* state) {
    return std::string(allocated) + R"(,"allocatedResourceStatuses":{"storage":")" + state + "\"}";
  };
  const std::string pending = in("NodeResizePending"), under_way = in("NodeResizeInProgress"),
                    infeasible = in("NodeResizeInfeasible"), controller = in("ControllerResizeInProgress");
  for (const Case& c :
       {Case{"as large as it is to be", R"("capacity":{"storage":"2Gi"})", "2Gi", "2Gi", Growth::kNone},
        {"a resizer without states", R"("capacity":{"storage":"1Gi"})", "2Gi", "1Gi",
         Growth::kVolumeAndClaim},
        {"no state", allocated, "2Gi", "1Gi", Growth::kNone},
        {"pending", pending.c_str(), "2Gi", "1Gi", Growth::kVolumeAndClaim},
        {"under way", under_way.c_str(), "2Gi", "1Gi", Growth::kVolumeAndClaim},
        {"infeasible", infeasible.c_str(), "2Gi", "1Gi", Growth::kNone},
        {"the controller's turn", controller.c_str(), "2Gi", "1Gi", Growth::kNone},
        {"grown by another node", R"("capacity":{"storage":"2Gi"})", "2Gi", "1Gi", Growth::kVolume}}) {
    corev1::PersistentVolumeClaim claim;
    ASSERT_TRUE(api::DecodeJson(std::string(R"({"status":{)") + c.status + "}}", claim)) << c.what;
    EXPECT_EQ(PlanGrowth(claim, *api::Amount::Parse(c.capacity), *api::Amount::Parse(c.known)), c.growth)
        << c.what;
  }
}

}  // namespace
}  // namespace keelson::kubelet
