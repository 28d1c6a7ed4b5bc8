#include "controlplane/controllers/disruption/controller.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controlplane/controllers/disruption/stale_conditions.h"
#include "controlplane/controllers/testing/cluster.h"
#include "lib/api/meta.h"
#include "lib/k8s/int_or_string.h"
#include "lib/k8s/pods/conditions.h"
#include "lib/k8s/pods/pod_util.h"

namespace keelson::controllers {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using namespace std::chrono_literals;
using Budget = api::policy::v1::PodDisruptionBudget;

Budget BudgetNamed(const std::string& name) {
  Budget budget;
  budget.mutable_metadata()->set_name(name);
  budget.mutable_metadata()->set_namespace_("default");
  (*budget.mutable_spec()->mutable_selector()->mutable_match_labels())["app"] = "web";
  return budget;
}

class DisruptionTest : public ::testing::Test {
 protected:
  // `count` pods of a ReplicaSet that wants `replicas`; the first `ready` of them are ready.
  void MakePods(int count, int ready, int32_t replicas) {
    appsv1::ReplicaSet set;
    set.mutable_metadata()->set_name("web");
    set.mutable_metadata()->set_namespace_("default");
    set.mutable_spec()->set_replicas(replicas);
    Result<appsv1::ReplicaSet> owner = cluster_.api.Create(set);
    ASSERT_TRUE(owner);
    for (int i = 0; i < count; ++i) {
      corev1::Pod pod = PodNamed("p" + std::to_string(i), {{"app", "web"}}, "n1");
      *pod.mutable_metadata()->add_owner_references() = api::ControllerRef(*owner);
      if (i < ready) MakeReady(pod, cluster_.clock.Now());
      Result<corev1::Pod> made = cluster_.api.Create(pod);
      ASSERT_TRUE(made);
      *made->mutable_status() = pod.status();
      ASSERT_TRUE(cluster_.api.UpdateStatus(*made));
    }
  }
  void Start(const Budget& budget) {
    ASSERT_TRUE(cluster_.api.Create(budget));
    cluster_.Start();
    cluster_.Drain({&controller_});
  }
  api::policy::v1::PodDisruptionBudgetStatus Status() {
    return cluster_.Get<Budget>("default", "b").status();
  }

  TestCluster cluster_;
  DisruptionController& controller_ = cluster_.Make<DisruptionController>();
};

TEST_F(DisruptionTest, AnOwnerMayBeSeenAfterItsPods) {
  appsv1::ReplicaSet set;
  set.mutable_metadata()->set_name("web");
  set.mutable_metadata()->set_namespace_("default");
  set.mutable_metadata()->set_uid("late");
  set.mutable_spec()->set_replicas(3);
  corev1::Pod pod = PodNamed("p", {{"app", "web"}}, "n1");
  *pod.mutable_metadata()->add_owner_references() = api::ControllerRef(set);
  MakeReady(pod, cluster_.clock.Now());
  cluster_.fake->Put(pod);
  Budget budget = BudgetNamed("b");
  *budget.mutable_spec()->mutable_max_unavailable() = k8s::FromInt(1);
  Start(budget);
  EXPECT_EQ(Status().expected_pods(), 0);
  cluster_.fake->Put(set);
  cluster_.Drain({&controller_});
  EXPECT_EQ(Status().expected_pods(), 3);
  EXPECT_EQ(Status().disruptions_allowed(), 0);
}

struct Case {
  const char* min_available;
  const char* max_unavailable;
  int pods, ready;
  int32_t replicas;
  int expected, desired, healthy, allowed;
};

class DisruptionNumbersTest : public DisruptionTest, public ::testing::WithParamInterface<Case> {};

intstr::IntOrString Value(const std::string& text) {
  return text.back() == '%' ? k8s::FromString(text) : k8s::FromInt(std::stoi(text));
}

TEST_P(DisruptionNumbersTest, AreCounted) {
  const Case& c = GetParam();
  MakePods(c.pods, c.ready, c.replicas);
  Budget budget = BudgetNamed("b");
  if (c.min_available) *budget.mutable_spec()->mutable_min_available() = Value(c.min_available);
  if (c.max_unavailable) *budget.mutable_spec()->mutable_max_unavailable() = Value(c.max_unavailable);
  Start(budget);
  const auto status = Status();
  EXPECT_EQ(status.expected_pods(), c.expected);
  EXPECT_EQ(status.desired_healthy(), c.desired);
  EXPECT_EQ(status.current_healthy(), c.healthy);
  EXPECT_EQ(status.disruptions_allowed(), c.allowed);
  const metav1::Condition* condition = k8s::FindCondition(status.conditions(), k8s::kDisruptionAllowed);
  ASSERT_TRUE(condition);
  EXPECT_EQ(condition->status(), c.allowed > 0 ? "True" : "False");
  EXPECT_EQ(condition->reason(), c.allowed > 0 ? "SufficientPods" : "InsufficientPods");
}

INSTANTIATE_TEST_SUITE_P(
    All, DisruptionNumbersTest,
    ::testing::Values(Case{"2", nullptr, 3, 3, 3, 3, 2, 3, 1}, Case{"2", nullptr, 3, 1, 3, 3, 2, 1, 0},
                      Case{"50%", nullptr, 3, 3, 5, 5, 3, 3, 0},  // half of 5 is 3
                      Case{"20%", nullptr, 3, 3, 5, 5, 1, 3, 2}, Case{nullptr, "1", 3, 3, 3, 3, 2, 3, 1},
                      Case{nullptr, "30%", 4, 4, 4, 4, 2, 4, 2},  // rounded up: 2 may go
                      Case{nullptr, "100%", 2, 2, 2, 2, 0, 2, 2}, Case{"1", nullptr, 0, 0, 0, 0, 1, 0, 0}));

TEST_F(DisruptionTest, FollowsPodsAndTheirOwners) {
  MakePods(2, 2, 2);
  Budget budget = BudgetNamed("b");
  *budget.mutable_spec()->mutable_max_unavailable() = k8s::FromInt(1);
  Start(budget);
  EXPECT_EQ(Status().disruptions_allowed(), 1);
  auto set = cluster_.Get<appsv1::ReplicaSet>("default", "web");
  set.mutable_spec()->set_replicas(4);
  ASSERT_TRUE(cluster_.api.Update(set));
  cluster_.Drain({&controller_});
  EXPECT_EQ(Status().desired_healthy(), 3);
  EXPECT_EQ(Status().disruptions_allowed(), 0);
}

TEST_F(DisruptionTest, PodsBeingEvictedDoNotCountUntilTheyShouldBeGone) {
  MakePods(3, 3, 3);
  Budget budget = BudgetNamed("b");
  *budget.mutable_spec()->mutable_min_available() = k8s::FromInt(1);
  Start(budget);
  EXPECT_EQ(Status().disruptions_allowed(), 2);
  Budget evicted = cluster_.Get<Budget>("default", "b");
  (*evicted.mutable_status()->mutable_disrupted_pods())["p0"] = api::ToTime(cluster_.clock.Now());
  (*evicted.mutable_status()->mutable_disrupted_pods())["gone"] = api::ToTime(cluster_.clock.Now());
  ASSERT_TRUE(cluster_.api.UpdateStatus(evicted));
  cluster_.Drain({&controller_});
  EXPECT_EQ(Status().current_healthy(), 2);
  EXPECT_EQ(Status().disruptions_allowed(), 1);
  EXPECT_EQ(Status().disrupted_pods_size(), 1) << "the pod that is gone is forgotten";
  cluster_.Advance(3min, {&controller_});
  EXPECT_EQ(Status().current_healthy(), 3);
  EXPECT_EQ(Status().disrupted_pods_size(), 0);
  EXPECT_THAT(cluster_.Events(), Contains(HasSubstr("NotDeleted: Pod was expected by PDB default/b")));
}

TEST_F(DisruptionTest, WhatCannotBeCountedAllowsNothing) {
  corev1::Pod pod = PodNamed("p0", {{"app", "web"}}, "n1");
  metav1::OwnerReference& owner = *pod.mutable_metadata()->add_owner_references();
  owner.set_api_version("batch/v1");
  owner.set_kind("Job");
  owner.set_name("j");
  owner.set_uid("u");
  owner.set_controller(true);
  ASSERT_TRUE(cluster_.api.Create(pod));
  Budget budget = BudgetNamed("b");
  *budget.mutable_spec()->mutable_max_unavailable() = k8s::FromInt(1);
  Start(budget);
  const auto status = Status();
  const metav1::Condition* condition = k8s::FindCondition(status.conditions(), k8s::kDisruptionAllowed);
  ASSERT_TRUE(condition);
  EXPECT_EQ(condition->reason(), "SyncFailed");
  EXPECT_EQ(condition->message(), "jobs.batch does not implement the scale subresource");
  EXPECT_EQ(status.disruptions_allowed(), 0);
  EXPECT_THAT(cluster_.Events(),
              Contains(HasSubstr("CalculateExpectedPodCountFailed: Failed to calculate the "
                                 "number of expected pods: jobs.batch does not implement")));
}

TEST_F(DisruptionTest, OwnersOfCustomKinds) {
  const std::string group = "/apis/example.com/v1";
  std::string resources = R"({"name":"widgets","kind":"Widget","namespaced":true,"verbs":["get"]})";
  std::string scale = R"({"metadata":{"name":"w","uid":"u"},"spec":{"replicas":4}})";
  int status = 200;
  cluster_.fake->SetInterceptor(
      [&](const client::ApiRequest& request) -> std::optional<Result<client::ApiResponse>> {
        if (request.target == group) {
          return client::ApiResponse{200, "application/json", R"({"resources":[)" + resources + "]}"};
        }
        if (request.target != group + "/namespaces/default/widgets/w/scale") return std::nullopt;
        return client::ApiResponse{
            status, "application/json",
            status == 200 ? scale
                          : R"({"kind":"Status","message":"not found","reason":"NotFound","code":404})"};
      });
  for (const char* name : {"p0", "p1", "p2"}) {
    corev1::Pod pod = PodNamed(name, {{"app", "web"}}, "n1");
    metav1::OwnerReference& owner = *pod.mutable_metadata()->add_owner_references();
    owner.set_api_version("example.com/v1");
    owner.set_kind("Widget");
    owner.set_name("w");
    owner.set_uid("u");
    owner.set_controller(true);
    MakeReady(pod, cluster_.clock.Now());
    cluster_.fake->Put(pod);
  }
  Budget budget = BudgetNamed("b");
  *budget.mutable_spec()->mutable_max_unavailable() = k8s::FromInt(2);
  Start(budget);
  EXPECT_EQ(Status().expected_pods(), 4);
  EXPECT_EQ(Status().disruptions_allowed(), 1);

  const auto failure = [&] {
    controller_.queue().Add("default/b");
    cluster_.Drain({&controller_});
    const auto now = Status();
    EXPECT_EQ(now.disruptions_allowed(), 0);
    return k8s::FindCondition(now.conditions(), k8s::kDisruptionAllowed)->message();
  };
  status = 404;
  EXPECT_EQ(failure(), "widgets.example.com does not implement the scale subresource");
  resources += R"(,{"name":"widgets/scale","kind":"Scale","namespaced":true,"verbs":["get"]})";
  EXPECT_EQ(failure(), "found no controllers for pod \"p0\"");
  status = 200;
  scale = R"({"metadata":{"name":"w","uid":"another"},"spec":{"replicas":4}})";
  EXPECT_EQ(failure(), "found no controllers for pod \"p0\"");
  resources = R"({"name":"gears","kind":"Gear"})";
  EXPECT_EQ(failure(), "no matches for kind \"Widget\" in version \"example.com/v1\"");
}

TEST(StaleDisruptionTest, WhatDoesNotHappenIsTakenBack) {
  TestCluster cluster;
  StaleDisruptionController& controller = cluster.Make<StaleDisruptionController>();
  const auto put = [&](const std::string& name, const char* reason, const char* phase, bool going) {
    corev1::Pod pod = PodNamed(name, {}, "n1");
    pod.mutable_status()->set_phase(phase);
    corev1::PodCondition condition;
    condition.set_type("DisruptionTarget");
    condition.set_status("True");
    condition.set_reason(reason);
    k8s::SetCondition(*pod.mutable_status(), std::move(condition), cluster.clock.Now());
    if (going) *pod.mutable_metadata()->mutable_deletion_timestamp() = api::ToTime(cluster.clock.Now());
    cluster.fake->Put(pod);
  };
  put("stale", "EvictionByEvictionAPI", "Running", false);
  put("of-kubelet", "TerminationByKubelet", "Running", false);
  put("going", "EvictionByEvictionAPI", "Running", true);
  put("ended", "EvictionByEvictionAPI", "Failed", false);
  const auto told = [&] {
    std::set<std::string> out;
    for (const auto& pod : cluster.List<corev1::Pod>()) {
      if (k8s::FindCondition(pod.status(), "DisruptionTarget")->status() == "True") {
        out.insert(pod.metadata().name());
      }
    }
    return out;
  };
  cluster.Start();
  cluster.Advance(119s, {&controller});
  EXPECT_EQ(told().size(), 4u);
  cluster.Advance(2s, {&controller});
  EXPECT_EQ(told(), (std::set<std::string>{"of-kubelet", "going", "ended"}));
  const auto pod = cluster.Get<corev1::Pod>("default", "stale");
  EXPECT_EQ(k8s::FindCondition(pod.status(), "DisruptionTarget")->last_transition_time().seconds(),
            api::ToTime(cluster.clock.Now()).seconds());
  EXPECT_EQ(pod.status().phase(), "Running");
}

}  // namespace
}  // namespace keelson::controllers
