// Controllers under faults and kills must reach the same final state, and never have too many pods, two
// owners for a pod, or a duplicate ordinal or index.
#include <gtest/gtest.h>

#include <set>

#include "controlplane/controllers/deployment/controller.h"
#include "controlplane/controllers/job/controller.h"
#include "controlplane/controllers/job/orphans.h"
#include "controlplane/controllers/job/testing/jobs.h"
#include "controlplane/controllers/replicaset/controller.h"
#include "controlplane/controllers/statefulset/controller.h"
#include "controlplane/controllers/statefulset/testing/stateful_sets.h"
#include "controlplane/controllers/testing/fault_world.h"
#include "lib/api/meta.h"
#include "lib/k8s/int_or_string.h"
#include "lib/k8s/pods/pod_util.h"

namespace keelson::controllers {
namespace {

constexpr int kStories = 15, kRounds = 25;

using Fate = FaultWorld::Fate;

std::vector<corev1::Pod> ActivePods(FaultWorld& world) {
  std::vector<corev1::Pod> pods = world.cluster.List<corev1::Pod>("default");
  std::erase_if(pods, [](const corev1::Pod& pod) { return !k8s::IsActive(pod); });
  return pods;
}

// While faults are on, pods sometimes fail or are deleted.
void ShakePods(FaultWorld& world, const bool& calm) {
  world.fate = [&world, &calm](const corev1::Pod&) {
    if (calm) return Fate::kRuns;
    const int roll = world.Roll(20);
    return roll == 0 ? Fate::kFails : roll == 1 ? Fate::kIsDeleted : Fate::kRuns;
  };
}

std::string Image(int version) { return "v" + std::to_string(version); }

class Stories : public testing::TestWithParam<int> {
 protected:
  uint32_t seed() const { return static_cast<uint32_t>(GetParam()); }
  bool calm_ = false;
};

TEST_P(Stories, Deployment) {
  FaultWorld world(seed(), [](TestCluster& cluster) -> std::vector<Controller*> {
    return {&cluster.Make<DeploymentController>(), &cluster.Make<ReplicaSetController>()};
  });
  constexpr int32_t kReplicas = 4;
  int32_t replicas = kReplicas;
  const int32_t surge = world.Roll(3), unavailable = surge == 0 ? 1 : world.Roll(3);
  // Some Deployments scale up meanwhile, so the minimum depends on how much of that the controller has seen.
  const bool shaken = world.Roll(3) == 0, grows = world.Roll(3) == 0;
  appsv1::Deployment wanted = DeploymentNamed("web", replicas);
  auto& rolling = *wanted.mutable_spec()->mutable_strategy()->mutable_rolling_update();

  *rolling.mutable_max_surge() = k8s::FromInt(surge);
  *rolling.mutable_max_unavailable() = k8s::FromInt(unavailable);
  if (shaken) ShakePods(world, calm_);
  world.on_pod = [&] {
    const std::vector<corev1::Pod> pods = ActivePods(world);
    CheckOwners(world, pods);
    if (pods.size() > static_cast<size_t>(replicas) + static_cast<size_t>(surge)) {
      world.Note(std::to_string(pods.size()) + " pods where " + std::to_string(replicas + surge) + " may be");
    }
  };
  // Where pods do not end by themselves, the controllers never delete a needed one.
  world.on_deleted = [&](const corev1::Pod& pod) {
    if (shaken || !k8s::IsReady(pod) || !k8s::IsActive(pod)) return;
    const std::vector<corev1::Pod> pods = ActivePods(world);
    const auto available =
        std::count_if(pods.begin(), pods.end(), [](const corev1::Pod& one) { return k8s::IsReady(one); });
    if (available < kReplicas - unavailable) {
      world.Note(std::to_string(available) + " available pods where " +
                 std::to_string(kReplicas - unavailable) + " must be");
    }
  };
  int version = 0;
  auto set_version = [&] {
    auto deployment = world.cluster.Get<appsv1::Deployment>("default", "web");
    deployment.mutable_spec()->mutable_template_()->mutable_spec()->mutable_containers(0)->set_image(
        Image(version));
    ASSERT_TRUE(world.cluster.api.Update(deployment));
  };
  auto grow = [&] {
    auto deployment = world.cluster.Get<appsv1::Deployment>("default", "web");
    deployment.mutable_spec()->set_replicas(++replicas);
    ASSERT_TRUE(world.cluster.api.Update(deployment));
  };
  world.Own([&] { ASSERT_TRUE(world.cluster.api.Create(wanted)); });
  world.Start();
  for (int round = 0; round < kRounds; ++round) {
    world.Round();
    if (grows && replicas < 7 && world.Roll(6) == 0) world.Own(grow);
    if (world.Roll(5) > 0) continue;
    version = world.Roll(4);  // may be a rollback
    world.Own(set_version);
  }
  calm_ = true;
  world.Calm();
  EXPECT_EQ(world.Problems(), "");
  world.Own([&] {
    const auto end = world.cluster.Get<appsv1::Deployment>("default", "web");
    EXPECT_EQ(end.status().replicas(), replicas);
    EXPECT_EQ(end.status().updated_replicas(), replicas);
    EXPECT_EQ(end.status().available_replicas(), replicas);
    EXPECT_EQ(end.status().observed_generation(), end.metadata().generation());
    const std::vector<corev1::Pod> pods = ActivePods(world);
    EXPECT_EQ(pods.size(), static_cast<size_t>(replicas));
    CheckOwners(world, pods);
    std::set<std::string> templates;
    int32_t in_sets = 0;
    for (const auto& set : world.cluster.List<appsv1::ReplicaSet>("default")) {
      in_sets += set.spec().replicas();
      EXPECT_TRUE(templates.insert(set.spec().template_().spec().containers(0).image()).second)
          << "two sets of one template";
      ASSERT_TRUE(api::ControllerOf(set.metadata()));
    }
    EXPECT_EQ(in_sets, replicas);
    for (const auto& pod : pods) {
      EXPECT_EQ(pod.spec().containers(0).image(), end.spec().template_().spec().containers(0).image());
    }
  });
  EXPECT_EQ(world.Problems(), "");
}

TEST_P(Stories, StatefulSet) {
  FaultWorld world(seed(), [](TestCluster& cluster) -> std::vector<Controller*> {
    return {&cluster.Make<StatefulSetController>()};
  });
  appsv1::StatefulSet wanted = WithClaims(StatefulSetNamed("web", 3), {"data"});
  const bool ordered = world.Roll(2) == 0, shaken = world.Roll(2) == 0;
  if (!ordered) wanted.mutable_spec()->set_pod_management_policy("Parallel");
  if (shaken) ShakePods(world, calm_);
  constexpr int kMost = 4;
  // A StatefulSet update with unchanged size replaces one pod at a time, from the last; later ordinals are
  // ready.
  world.on_deleted = [&](const corev1::Pod& pod) {
    if (shaken || !k8s::IsReady(pod)) return;
    const int32_t ordinal = *OrdinalOf(wanted, pod);
    int32_t beyond = 0;
    const std::vector<corev1::Pod> pods = ActivePods(world);
    for (const corev1::Pod& one : pods) {
      const bool after = *OrdinalOf(wanted, one) > ordinal;
      if (!k8s::IsReady(one) && (ordered || after)) {
        world.Note("updated while not ready: " + one.metadata().name());
      }
      beyond += after;
    }
    const int32_t others = wanted.spec().replicas() - 1;
    if (beyond != others - ordinal || (ordered && pods.size() != static_cast<size_t>(others))) {
      world.Note("more than one at a time");
    }
  };
  world.on_pod = [&] {
    const std::vector<corev1::Pod> pods = world.cluster.List<corev1::Pod>("default");
    CheckOwners(world, pods);
    std::set<int32_t> ordinals;
    for (const corev1::Pod& pod : pods) {
      const auto ordinal = OrdinalOf(wanted, pod);
      if (!ordinal || *ordinal >= kMost) world.Note("a pod " + pod.metadata().name());
      if (ordinal && !ordinals.insert(*ordinal).second) world.Note("ordinal twice: " + pod.metadata().name());
    }
    if (shaken || !ordered) return;
    if (std::count_if(pods.begin(), pods.end(), [](const corev1::Pod& pod) { return !k8s::IsReady(pod); }) >
        1) {
      world.Note("made while another is not ready");
    }
  };
  world.Own([&] { ASSERT_TRUE(world.cluster.api.Create(wanted)); });
  world.Start();
  for (int round = 0; round < kRounds; ++round) {
    world.Round();
    if (world.Roll(5) > 0) continue;
    world.Own([&] {
      auto set = world.cluster.Get<appsv1::StatefulSet>("default", "web");
      if (shaken) set.mutable_spec()->set_replicas(1 + world.Roll(kMost));
      set.mutable_spec()->mutable_template_()->mutable_spec()->mutable_containers(0)->set_image(
          Image(world.Roll(3)));
      ASSERT_TRUE(world.cluster.api.Update(set));
    });
  }
  calm_ = true;
  world.Calm();
  EXPECT_EQ(world.Problems(), "");
  world.Own([&] {
    const auto end = world.cluster.Get<appsv1::StatefulSet>("default", "web");
    EXPECT_EQ(end.status().replicas(), end.spec().replicas());
    EXPECT_EQ(end.status().available_replicas(), end.spec().replicas());
    EXPECT_EQ(end.status().updated_replicas(), end.spec().replicas());
    EXPECT_EQ(end.status().current_revision(), end.status().update_revision());
    std::set<std::string> names, expected;
    for (int i = 0; i < end.spec().replicas(); ++i) expected.insert("web-" + std::to_string(i));
    for (const corev1::Pod& pod : world.cluster.List<corev1::Pod>("default")) {
      names.insert(pod.metadata().name());
      EXPECT_EQ(pod.spec().containers(0).image(), end.spec().template_().spec().containers(0).image());
      EXPECT_EQ(pod.spec().volumes(0).volume_source().persistent_volume_claim().claim_name(),
                "data-" + pod.metadata().name());
    }
    EXPECT_EQ(names, expected);
  });
}

TEST_P(Stories, Job) {
  FaultWorld world(seed(), [](TestCluster& cluster) -> std::vector<Controller*> {
    return {&cluster.Make<JobController>(), &cluster.Make<JobOrphanController>()};
  });
  constexpr int32_t kCompletions = 5, kParallelism = 3;
  const bool indexed = world.Roll(2) == 0;
  batchv1::Job wanted = JobNamed("j", kCompletions, kParallelism);
  if (indexed) wanted.mutable_spec()->set_completion_mode("Indexed");
  wanted.mutable_spec()->set_backoff_limit(1000);
  world.fate = [&](const corev1::Pod&) {
    if (calm_) return Fate::kSucceeds;
    const int roll = world.Roll(10);
    return roll < 2 ? Fate::kFails : roll == 2 ? Fate::kIsDeleted : roll < 5 ? Fate::kSucceeds : Fate::kRuns;
  };
  world.on_pod = [&] {
    const std::vector<corev1::Pod> pods = ActivePods(world);
    CheckOwners(world, pods);
    if (pods.size() > static_cast<size_t>(kParallelism)) {
      world.Note(std::to_string(pods.size()) + " pods at once");
    }
    std::set<int32_t> indexes;
    for (const corev1::Pod& pod : pods) {
      const auto index = CompletionIndex(pod);
      if (indexed && (!index || !indexes.insert(*index).second)) {
        world.Note("an index twice or none: " + pod.metadata().name());
      }
    }
  };
  world.Own([&] { ASSERT_TRUE(world.cluster.api.Create(wanted)); });
  world.Start();
  for (int round = 0; round < kRounds; ++round) world.Round();
  calm_ = true;
  world.Calm();
  EXPECT_EQ(world.Problems(), "");
  world.Own([&] {
    const auto end = world.cluster.Get<batchv1::Job>("default", "j");
    EXPECT_EQ(TrueConditions(end).back(), "Complete/CompletionsReached");
    EXPECT_EQ(end.status().succeeded(), kCompletions);
    EXPECT_EQ(end.status().active(), 0);
    if (indexed) {
      EXPECT_EQ(end.status().completed_indexes(), "0-4");
    }
    EXPECT_EQ(end.status().uncounted_terminated_pods().ByteSizeLong(), 0u);
    for (const corev1::Pod& pod : world.cluster.List<corev1::Pod>("default")) EXPECT_FALSE(IsTracked(pod));
  });
}

INSTANTIATE_TEST_SUITE_P(Seeds, Stories, testing::Range(0, kStories));

}  // namespace
}  // namespace keelson::controllers
