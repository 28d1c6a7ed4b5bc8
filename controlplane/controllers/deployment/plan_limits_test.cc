// Property test: for any sizes, pods and annotations, no step exceeds the surge limit or deletes pods that
// the minimum needs.
#include <gtest/gtest.h>

#include <random>

#include "controlplane/controllers/deployment/plan.h"
#include "controlplane/controllers/testing/cluster.h"
#include "lib/k8s/int_or_string.h"

namespace keelson::controllers {
namespace {

class AnySets {
 public:
  explicit AnySets(uint32_t seed) : dice_(seed) {
    deployment = DeploymentNamed("web", Roll(12));
    auto& rolling = *deployment.mutable_spec()->mutable_strategy()->mutable_rolling_update();
    *rolling.mutable_max_surge() = AnyLimit();
    *rolling.mutable_max_unavailable() = AnyLimit();
    deployment.mutable_status()->set_replicas(Roll(15));
    const int count = 1 + Roll(4);
    for (int i = 0; i < count; ++i) sets.push_back(AnySet(i));
    if (Roll(4) > 0) new_set = sets.back();
  }

  appsv1::Deployment deployment;
  SetPointers sets;
  SetPointer new_set;

 private:
  int Roll(int sides) { return std::uniform_int_distribution<int>(0, sides - 1)(dice_); }
  intstr::IntOrString AnyLimit() {
    if (Roll(2) == 0) return k8s::FromInt(Roll(5));
    return k8s::FromString(std::to_string(Roll(101)) + "%");
  }
  SetPointer AnySet(int number) {
    auto set = std::make_shared<appsv1::ReplicaSet>();
    metav1::ObjectMeta& meta = *set->mutable_metadata();
    meta.set_name("s" + std::to_string(number));
    meta.set_uid(meta.name());
    meta.mutable_creation_timestamp()->set_seconds(1000 + Roll(3));
    meta.set_generation(2);
    // The annotation may be of any deployment's size, or missing.
    if (Roll(3) > 0) (*meta.mutable_annotations())[kMaxReplicas] = std::to_string(Roll(16));
    set->mutable_spec()->set_replicas(Roll(3) == 0 ? 0 : Roll(10));
    set->mutable_status()->set_observed_generation(Roll(5) == 0 ? 1 : 2);
    // Existing pods: some are terminating, some not created yet.
    set->mutable_status()->set_replicas(std::max(set->spec().replicas() + Roll(7) - 3, 0));
    set->mutable_status()->set_available_replicas(Roll(set->status().replicas() + 1));
    return set;
  }

  std::mt19937 dice_;
};

int32_t SizeIn(const Sizes& plan, const appsv1::ReplicaSet& set) {
  auto it = plan.find(set.metadata().name());
  return it == plan.end() ? set.spec().replicas() : it->second;
}

struct Totals {
  int32_t spec = 0, held = 0, available = 0;
};
Totals After(const SetPointers& sets, const Sizes& plan) {
  Totals totals;
  for (const SetPointer& set : sets) {
    const int32_t size = SizeIn(plan, *set);
    EXPECT_GE(size, 0);
    totals.spec += size;
    totals.held += std::max(size, set->status().replicas());
    totals.available += std::min(size, set->status().available_replicas());
  }
  return totals;
}

constexpr uint32_t kStories = 20'000;

TEST(PlanLimitsTest, NeverBeyondTheSurge) {
  int grown = 0;
  for (uint32_t seed = 0; seed < kStories; ++seed) {
    const AnySets any(seed);
    const int32_t most = any.deployment.spec().replicas() + LimitsOf(any.deployment).surge;
    const Totals before = After(any.sets, {});
    std::vector<Sizes> plans = {PlanScale(any.deployment, any.new_set, Without(any.sets, any.new_set))};
    if (any.new_set) plans.push_back(PlanRollingUpdate(any.deployment, any.new_set, any.sets));
    for (const Sizes& plan : plans) {
      const Totals after = After(any.sets, plan);
      EXPECT_LE(after.held, std::max(most, before.held)) << "seed " << seed;
      grown += after.spec > before.spec;
    }
  }
  EXPECT_GT(grown, 1000);  // they do grow
}

TEST(PlanLimitsTest, ScalingReachesItsSizeWhenNothingIsOnItsWay) {
  for (uint32_t seed = 0; seed < kStories; ++seed) {
    AnySets any(seed);
    SetPointers settled;
    for (const SetPointer& set : any.sets) {
      auto same = std::make_shared<appsv1::ReplicaSet>(*set);
      same->mutable_status()->set_observed_generation(2);
      same->mutable_status()->set_replicas(set->spec().replicas());
      settled.push_back(same);
    }
    if (WithReplicas(settled).size() < 2) continue;
    const int32_t replicas = any.deployment.spec().replicas();
    const int32_t size = replicas == 0 ? 0 : replicas + LimitsOf(any.deployment).surge;
    EXPECT_EQ(After(settled, PlanScale(any.deployment, nullptr, settled)).spec, size) << "seed " << seed;
  }
}

TEST(PlanLimitsTest, NeverBelowTheMinimum) {
  int shrunk = 0;
  for (uint32_t seed = 0; seed < kStories; ++seed) {
    const AnySets any(seed);
    if (!any.new_set || any.new_set->spec().replicas() > any.deployment.spec().replicas()) continue;
    const int32_t least = any.deployment.spec().replicas() - LimitsOf(any.deployment).unavailable;
    const Totals before = After(any.sets, {});
    const Totals after = After(any.sets, PlanRollingUpdate(any.deployment, any.new_set, any.sets));
    EXPECT_GE(after.available, std::min(least, before.available)) << "seed " << seed;
    shrunk += after.spec < before.spec;
  }
  EXPECT_GT(shrunk, 1000);
}

}  // namespace
}  // namespace keelson::controllers
