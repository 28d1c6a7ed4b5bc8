#include "controlplane/controllers/deployment/plan.h"

#include <gtest/gtest.h>

#include <limits>

#include "controlplane/controllers/testing/cluster.h"
#include "lib/api/meta.h"
#include "lib/k8s/int_or_string.h"

namespace keelson::controllers {
namespace {

using namespace std::chrono_literals;

const WallTime kNow{std::chrono::seconds(1'800'000'000)};

intstr::IntOrString Value(const std::string& text) {
  return text.back() == '%' ? k8s::FromString(text) : k8s::FromInt(std::stoi(text));
}

appsv1::Deployment Rolling(int32_t replicas, const std::string& surge, const std::string& unavailable) {
  appsv1::Deployment deployment = DeploymentNamed("web", replicas);
  auto& rolling = *deployment.mutable_spec()->mutable_strategy()->mutable_rolling_update();
  *rolling.mutable_max_surge() = Value(surge);
  *rolling.mutable_max_unavailable() = Value(unavailable);
  return deployment;
}

struct Set {
  std::string name;
  int32_t spec, available;
  int32_t max_annotation = 0;
  int32_t pods_to_go = 0;  // that it still has beyond its size
  bool observed = true;
};

SetPointer Make(const Set& wanted, int age) {
  auto set = std::make_shared<appsv1::ReplicaSet>();
  set->mutable_metadata()->set_name(wanted.name);
  set->mutable_metadata()->set_uid(wanted.name);
  *set->mutable_metadata()->mutable_creation_timestamp() = api::ToTime(kNow - std::chrono::seconds(age));
  if (wanted.max_annotation) {
    (*set->mutable_metadata()->mutable_annotations())[kMaxReplicas] = std::to_string(wanted.max_annotation);
  }
  set->mutable_spec()->set_replicas(wanted.spec);
  set->mutable_metadata()->set_generation(2);
  set->mutable_status()->set_observed_generation(wanted.observed ? 2 : 1);
  set->mutable_status()->set_replicas(wanted.spec + wanted.pods_to_go);
  set->mutable_status()->set_available_replicas(wanted.available);
  return set;
}

// The oldest first, as written.
SetPointers MakeAll(const std::vector<Set>& wanted) {
  SetPointers sets;
  for (size_t i = 0; i < wanted.size(); ++i) {
    sets.push_back(Make(wanted[i], static_cast<int>(wanted.size() - i)));
  }
  return sets;
}

TEST(LimitsTest, RoundsSurgeUpAndUnavailableDown) {
  struct Case {
    int32_t replicas;
    const char *surge, *unavailable;
    int32_t want_surge, want_unavailable;
  };
  for (const Case& c :
       {Case{10, "25%", "25%", 3, 2}, Case{1, "25%", "25%", 1, 0}, Case{4, "0", "0", 0, 1},
        Case{3, "0%", "10%", 0, 1}, Case{2, "1", "5", 1, 2}, Case{0, "25%", "25%", 0, 0},
        Case{10, "100%", "0", 10, 0}, Case{std::numeric_limits<int32_t>::max() - 5, "25%", "1", 5, 1}}) {
    Limits limits = LimitsOf(Rolling(c.replicas, c.surge, c.unavailable));
    EXPECT_EQ(limits.surge, c.want_surge) << c.replicas << " " << c.surge;
    EXPECT_EQ(limits.unavailable, c.want_unavailable) << c.replicas << " " << c.unavailable;
  }
  appsv1::Deployment recreate = DeploymentNamed("web", 10);
  recreate.mutable_spec()->mutable_strategy()->set_type("Recreate");
  EXPECT_EQ(LimitsOf(recreate).surge, 0);
}

TEST(PlanRollingUpdateTest, Steps) {
  struct Case {
    const char* what;
    appsv1::Deployment deployment;
    std::vector<Set> sets;  // the last is the new one
    Sizes want;
  };
  const Case cases[] = {
      {"first surge", Rolling(10, "25%", "25%"), {{"old", 10, 10}, {"new", 0, 0}}, {{"new", 3}}},
      {"then old goes down to the minimum",
       Rolling(10, "25%", "25%"),
       {{"old", 10, 10}, {"new", 3, 0}},
       {{"old", 8}}},
      {"room again for the new", Rolling(10, "25%", "25%"), {{"old", 8, 8}, {"new", 3, 0}}, {{"new", 5}}},
      {"no room while its pods are there",
       Rolling(10, "25%", "25%"),
       {{"old", 8, 8, 0, 2}, {"new", 3, 0}},
       {}},
      {"some room when some of them have gone",
       Rolling(10, "25%", "25%"),
       {{"old", 8, 8, 0, 1}, {"new", 3, 0}},
       {{"new", 4}}},
      {"no room while it is not known",
       Rolling(10, "25%", "25%"),
       {{"old", 8, 8, 0, 0, false}, {"new", 3, 0}},
       {}},
      {"old ones go down also then",
       Rolling(10, "25%", "25%"),
       {{"old", 8, 8}, {"new", 5, 5, 0, 0, false}},
       {{"old", 3}}},
      {"those that are about to go do not count as available",
       Rolling(10, "25%", "25%"),
       {{"old", 8, 10}, {"new", 5, 3}},
       {{"old", 5}}},
      {"nothing until pods are available", Rolling(10, "25%", "25%"), {{"old", 8, 8}, {"new", 5, 0}}, {}},
      {"available ones let old ones go",
       Rolling(10, "25%", "25%"),
       {{"old", 8, 8}, {"new", 5, 5}},
       {{"old", 3}}},
      {"no surge", Rolling(4, "0", "1"), {{"old", 4, 4}, {"new", 0, 0}}, {{"old", 3}}},
      {"no unavailable", Rolling(4, "1", "0"), {{"old", 4, 4}, {"new", 1, 0}}, {}},
      {"taken up again, it waits for its own last pods to go",
       Rolling(10, "50%", "0"),
       {{"old", 5, 5}, {"new", 5, 10, 0, 5}},
       {}},
      {"unhealthy old pods go first",
       Rolling(10, "2", "0"),
       {{"sick", 5, 0}, {"old", 5, 5}, {"new", 2, 2}},
       {{"sick", 3}}},
      {"the oldest goes first", Rolling(4, "1", "1"), {{"a", 2, 2}, {"b", 2, 2}, {"new", 1, 1}}, {{"a", 0}}},
      {"new one too big", Rolling(3, "1", "1"), {{"new", 5, 5}}, {{"new", 3}}},
      {"done", Rolling(3, "1", "1"), {{"old", 0, 0}, {"new", 3, 3}}, {}},
  };
  for (const Case& c : cases) {
    SetPointers sets = MakeAll(c.sets);
    EXPECT_EQ(PlanRollingUpdate(c.deployment, sets.back(), sets), c.want) << c.what;
  }
}

TEST(PlanScaleTest, KeepsProportions) {
  struct Case {
    const char* what;
    appsv1::Deployment deployment;
    std::vector<Set> sets;  // the last is the new one
    Sizes want;
  };
  const Case cases[] = {
      {"single set follows", Rolling(7, "0", "1"), {{"new", 5, 5, 5}}, {{"new", 7}}},
      {"single old set, none new", Rolling(7, "0", "1"), {{"old", 5, 5, 5}, {"new", 0, 0}}, {{"old", 7}}},
      {"up in proportion, the bigger first",
       Rolling(15, "0", "1"),
       {{"old", 8, 8, 10}, {"new", 2, 2, 10}},
       {{"old", 12}, {"new", 3}}},
      {"down in proportion",
       Rolling(5, "0", "1"),
       {{"old", 6, 6, 10}, {"new", 4, 4, 10}},
       {{"old", 3}, {"new", 2}}},
      {"to zero", Rolling(0, "0", "1"), {{"old", 6, 6, 10}, {"new", 4, 4, 10}}, {{"old", 0}, {"new", 0}}},
      {"rounding leaves the rest to the biggest",
       Rolling(12, "0", "1"),
       {{"a", 5, 5, 10}, {"b", 5, 5, 10}},
       {{"a", 6}, {"b", 6}}},
      {"not while pods are there that are to go",
       Rolling(15, "0", "1"),
       {{"old", 8, 8, 10, 1}, {"new", 2, 2, 10}},
       {}},
      {"nor while it is not known",
       Rolling(15, "0", "1"),
       {{"old", 8, 8, 10}, {"new", 2, 2, 10, 0, false}},
       {}},
      {"down at any time",
       Rolling(5, "0", "1"),
       {{"old", 6, 6, 10, 2}, {"new", 4, 4, 10, 0, false}},
       {{"old", 3}, {"new", 2}}},
      {"annotations that say the opposite",
       Rolling(5, "0", "1"),
       {{"old", 6, 6, 2}, {"new", 4, 4, 2}},
       {{"old", 1}, {"new", 4}}},
      {"annotations that would make a set larger than any",
       Rolling(2'000'000'000, "0", "1"),
       {{"old", 2000, 2000, 1}, {"new", 1000, 1000, 1}},
       {{"old", 1'999'999'000}, {"new", 1000}}},
      {"a single set takes what the others' last pods leave",
       Rolling(9, "1", "1"),
       {{"old", 0, 0, 6, 3}, {"new", 5, 5, 6}},
       {{"new", 7}}},
  };
  for (const Case& c : cases) {
    SetPointers sets = MakeAll(c.sets);
    SetPointer new_set = sets.back();
    EXPECT_EQ(PlanScale(c.deployment, new_set, Without(sets, new_set)), c.want) << c.what;
  }
}

TEST(TemplateTest, HashLabelDoesNotMatter) {
  appsv1::Deployment deployment = DeploymentNamed("web", 1);
  corev1::PodTemplateSpec labelled = deployment.spec().template_();
  (*labelled.mutable_metadata()->mutable_labels())[kPodTemplateHash] = "abc";
  EXPECT_TRUE(SameTemplate(labelled, deployment.spec().template_()));
  EXPECT_EQ(TemplateHash(labelled, 0), TemplateHash(deployment.spec().template_(), 0));
  EXPECT_NE(TemplateHash(labelled, 1), TemplateHash(labelled, 0));
  labelled.mutable_spec()->mutable_containers(0)->set_image("other");
  EXPECT_FALSE(SameTemplate(labelled, deployment.spec().template_()));
  EXPECT_NE(TemplateHash(labelled, 0), TemplateHash(deployment.spec().template_(), 0));
  EXPECT_EQ(TemplateHash(labelled, 0).find_first_not_of("bcdfghjklmnpqrstvwxz2456789"), std::string::npos);
}

TEST(AnnotateReplicasTest, SurgeCountsWithoutReplicasToo) {
  struct Case {
    const char* what;
    int32_t replicas;
    intstr::IntOrString surge;
    const char* strategy;
    std::string want;
  };
  for (const Case& c : {Case{"a number", 0, k8s::FromInt(2), "RollingUpdate", "2"},
                        Case{"a part of nothing", 0, k8s::FromString("25%"), "RollingUpdate", "0"},
                        Case{"with replicas", 4, k8s::FromString("25%"), "RollingUpdate", "5"},
                        Case{"no rolling update", 0, k8s::FromInt(2), "Recreate", "0"}}) {
    appsv1::Deployment deployment = DeploymentNamed("web", c.replicas);
    deployment.mutable_spec()->mutable_strategy()->set_type(c.strategy);
    *deployment.mutable_spec()->mutable_strategy()->mutable_rolling_update()->mutable_max_surge() = c.surge;
    appsv1::ReplicaSet set;
    AnnotateReplicas(deployment, set);
    EXPECT_EQ(set.metadata().annotations().at(kMaxReplicas), c.want) << c.what;
  }
}

TEST(AnnotateSetTest, MovesTheRevisionAndKeepsTheHistory) {
  appsv1::Deployment deployment = DeploymentNamed("web", 4);
  auto& annotations = *deployment.mutable_metadata()->mutable_annotations();
  annotations["note"] = "copied";
  annotations["kubectl.kubernetes.io/last-applied-configuration"] = "{}";
  annotations[kRevision] = "9";
  appsv1::ReplicaSet set;
  EXPECT_TRUE(AnnotateSet(deployment, 1, false, set));
  EXPECT_EQ(set.metadata().annotations().at(kRevision), "1");
  EXPECT_EQ(set.metadata().annotations().at("note"), "copied");
  EXPECT_EQ(set.metadata().annotations().at(kDesiredReplicas), "4");
  EXPECT_EQ(set.metadata().annotations().at(kMaxReplicas), "5");
  EXPECT_FALSE(set.metadata().annotations().contains("kubectl.kubernetes.io/last-applied-configuration"));
  EXPECT_FALSE(set.metadata().annotations().contains(kRevisionHistory));
  EXPECT_FALSE(AnnotateSet(deployment, 1, true, set));
  EXPECT_TRUE(AnnotateSet(deployment, 3, true, set));
  EXPECT_TRUE(AnnotateSet(deployment, 5, true, set));
  EXPECT_EQ(set.metadata().annotations().at(kRevisionHistory), "1,3");
  EXPECT_EQ(RevisionOf(set.metadata()), 5);
}

TEST(SetsToCleanUpTest, OldestRevisionsThatAreSettled) {
  appsv1::Deployment deployment = DeploymentNamed("web", 1);
  deployment.mutable_spec()->set_revision_history_limit(2);
  SetPointers sets;
  for (int revision : {3, 1, 2, 4, 5}) {
    auto set = std::make_shared<appsv1::ReplicaSet>(*Make({"r" + std::to_string(revision), 0, 0}, 10));
    (*set->mutable_metadata()->mutable_annotations())[kRevision] = std::to_string(revision);
    if (revision == 2) set->mutable_status()->set_replicas(1);  // pods still there
    sets.push_back(set);
  }
  std::vector<std::string> names;
  for (const auto& set : SetsToCleanUp(deployment, sets)) names.push_back(set->metadata().name());
  EXPECT_EQ(names, (std::vector<std::string>{"r1", "r3"}));
  deployment.mutable_spec()->set_revision_history_limit(5);
  EXPECT_TRUE(SetsToCleanUp(deployment, sets).empty());
}

TEST(RolloutStatusTest, ProgressFollowsTheRollout) {
  appsv1::Deployment deployment = Rolling(2, "1", "0");
  deployment.mutable_spec()->set_progress_deadline_seconds(60);
  SetPointers sets = MakeAll({{"old", 2, 2}, {"new", 1, 0}});
  *deployment.mutable_status() = RolloutStatus(deployment, sets[1], sets, kNow);
  const auto* progressing = FindCondition(deployment.status(), "Progressing");
  ASSERT_TRUE(progressing);
  EXPECT_EQ(progressing->reason(), "ReplicaSetUpdated");
  EXPECT_EQ(deployment.status().updated_replicas(), 1);
  EXPECT_EQ(deployment.status().unavailable_replicas(), 1);
  EXPECT_EQ(FindCondition(deployment.status(), "Available")->status(), "True");
  EXPECT_EQ(StuckCheckAfter(deployment, deployment.status(), kNow), std::chrono::nanoseconds(61s));

  *deployment.mutable_status() = RolloutStatus(deployment, sets[1], sets, kNow + 61s);
  progressing = FindCondition(deployment.status(), "Progressing");
  EXPECT_EQ(progressing->reason(), "ProgressDeadlineExceeded");
  EXPECT_EQ(progressing->status(), "False");
  EXPECT_EQ(StuckCheckAfter(deployment, deployment.status(), kNow + 61s), std::nullopt);

  sets = MakeAll({{"old", 0, 0}, {"new", 2, 2}});
  *deployment.mutable_status() = RolloutStatus(deployment, sets[1], sets, kNow + 70s);
  progressing = FindCondition(deployment.status(), "Progressing");
  EXPECT_EQ(progressing->reason(), "NewReplicaSetAvailable");
  EXPECT_EQ(progressing->message(), "ReplicaSet \"new\" has successfully progressed.");
  EXPECT_FALSE(deployment.status().has_unavailable_replicas());
}

TEST(SetConditionTest, KeepsTimesWhileNothingChanges) {
  appsv1::DeploymentStatus status;
  SetCondition(status, MakeCondition("Available", "True", "A", "one", kNow));
  SetCondition(status, MakeCondition("Available", "True", "A", "two", kNow + 5s));
  EXPECT_EQ(status.conditions(0).message(), "one");
  SetCondition(status, MakeCondition("Available", "True", "B", "three", kNow + 5s));
  EXPECT_EQ(status.conditions(0).message(), "three");
  EXPECT_EQ(status.conditions(0).last_transition_time().seconds(), api::ToTime(kNow).seconds());
  SetCondition(status, MakeCondition("Available", "False", "B", "four", kNow + 9s));
  EXPECT_EQ(status.conditions(0).last_transition_time().seconds(), api::ToTime(kNow + 9s).seconds());
  EXPECT_EQ(status.conditions_size(), 1);
}

}  // namespace
}  // namespace keelson::controllers
