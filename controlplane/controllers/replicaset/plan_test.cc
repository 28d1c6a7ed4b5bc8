#include "controlplane/controllers/replicaset/plan.h"

#include <gtest/gtest.h>

#include "controlplane/controllers/testing/cluster.h"
#include "lib/api/meta.h"

namespace keelson::controllers {
namespace {

using namespace std::chrono_literals;

const WallTime kNow{std::chrono::seconds(1'800'000'000)};

std::shared_ptr<const corev1::Pod> Make(const std::string& name, std::chrono::seconds ready_for) {
  corev1::Pod pod = PodNamed(name, {}, "n1");
  if (ready_for > 0s) MakeReady(pod, kNow - ready_for);
  pod.mutable_status()->set_phase("Running");
  return std::make_shared<corev1::Pod>(pod);
}

TEST(ReplicaCountsTest, CountsAndTimesAvailability) {
  appsv1::ReplicaSet set;
  set.mutable_spec()->set_min_ready_seconds(60);
  (*set.mutable_spec()->mutable_template_()->mutable_metadata()->mutable_labels())["app"] = "web";
  auto labelled = std::make_shared<corev1::Pod>(*Make("a", 20s));
  (*labelled->mutable_metadata()->mutable_labels())["app"] = "web";
  PodPointers pods = {labelled, Make("b", 100s), Make("c", 0s), Make("d", 50s)};
  ReplicaCounts counts = CountReplicas(set, pods, 2, kNow);
  EXPECT_EQ(counts.replicas, 4);
  EXPECT_EQ(counts.fully_labeled, 1);
  EXPECT_EQ(counts.ready, 3);
  EXPECT_EQ(counts.available, 1);
  EXPECT_EQ(counts.terminating, 2);
  EXPECT_EQ(counts.next_available, std::chrono::nanoseconds(10s));
}

TEST(NewStatusTest, FailureComesAndGoes) {
  appsv1::ReplicaSet set;
  set.mutable_metadata()->set_generation(3);
  const std::string failure = "quota";
  *set.mutable_status() = NewStatus(set, {}, &failure, -2, kNow);
  ASSERT_EQ(set.status().conditions_size(), 1);
  EXPECT_EQ(set.status().conditions(0).type(), "ReplicaFailure");
  EXPECT_EQ(set.status().conditions(0).reason(), "FailedCreate");
  EXPECT_EQ(set.status().conditions(0).message(), "quota");
  EXPECT_EQ(set.status().observed_generation(), 3);
  EXPECT_FALSE(set.status().has_ready_replicas());
  *set.mutable_status() = NewStatus(set, {}, nullptr, 0, kNow);
  EXPECT_EQ(set.status().conditions_size(), 0);
}

}  // namespace
}  // namespace keelson::controllers
