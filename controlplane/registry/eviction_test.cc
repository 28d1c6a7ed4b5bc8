// pods/eviction against budgets.
#include "controlplane/registry/testing/fixture.h"
#include "lib/api/proto/policy_v1.pb.h"
#include "lib/k8s/pods/pod_util.h"

namespace keelson::registry {
namespace {

namespace policyv1 = api::policy::v1;
using Budget = policyv1::PodDisruptionBudget;

class EvictionTest : public RegistryTest {
 protected:
  // Makes a pod on a node, with label app=`app`.
  void MakePod(const std::string& name, const std::string& app, const std::string& phase, bool ready) {
    corev1::Pod pod = Pod(name);
    (*pod.mutable_metadata()->mutable_labels())["app"] = app;
    pod.mutable_spec()->set_node_name("n1");
    auto made = Create(pod);
    ASSERT_TRUE(made) << made.error().message();
    made->mutable_status()->set_phase(phase);
    corev1::PodCondition& condition = *made->mutable_status()->add_conditions();
    condition.set_type("Ready");
    condition.set_status(ready ? "True" : "False");
    auto stored = Update(*made, &Row("", "pods/status"));
    ASSERT_TRUE(stored) << stored.error().message();
  }
  void MakeBudget(const std::string& name, const std::string& app, int allowed, int healthy = 2,
                  int desired = 2, const std::string& policy = "") {
    Budget budget;
    budget.mutable_metadata()->set_name(name);
    (*budget.mutable_spec()->mutable_selector()->mutable_match_labels())["app"] = app;
    budget.mutable_spec()->mutable_min_available()->set_int_val(desired);
    if (!policy.empty()) budget.mutable_spec()->set_unhealthy_pod_eviction_policy(policy);
    auto made = Create(budget);
    ASSERT_TRUE(made) << made.error().message();
    made->mutable_status()->set_observed_generation(made->metadata().generation());
    made->mutable_status()->set_disruptions_allowed(allowed);
    made->mutable_status()->set_current_healthy(healthy);
    made->mutable_status()->set_desired_healthy(desired);
    made->mutable_status()->set_expected_pods(healthy);
    auto stored = Update(*made, &Row("policy", "poddisruptionbudgets/status"));
    ASSERT_TRUE(stored) << stored.error().message();
  }
  Result<> Evict(const std::string& name, const metav1::DeleteOptions* delete_options = nullptr,
                 bool dry_run = false) {
    auto eviction = std::make_unique<policyv1::Eviction>();
    eviction->mutable_metadata()->set_name(name);
    if (delete_options) *eviction->mutable_delete_options() = *delete_options;
    WriteOptions options;
    options.dry_run = dry_run;
    auto written = (*plane_)->Create(Row("", "pods/eviction"), "default", name, std::move(eviction), options);
    if (!written) return written.error();
    return {};
  }
};

TEST_F(EvictionTest, TakesADisruptionAndSaysWhy) {
  MakePod("p", "web", "Running", true);
  MakeBudget("b", "web", 1);
  Result<> evicted = Evict("p");
  ASSERT_TRUE(evicted) << evicted.error().message();
  auto pod = Get<corev1::Pod>("p");
  ASSERT_TRUE(pod);
  EXPECT_TRUE(pod->metadata().has_deletion_timestamp());
  const corev1::PodCondition* condition = k8s::FindCondition(pod->status(), k8s::kDisruptionTarget);
  ASSERT_TRUE(condition);
  EXPECT_EQ(condition->reason(), "EvictionByEvictionAPI");
  EXPECT_EQ(condition->message(), "Eviction API: evicting");
  auto budget = Get<Budget>("b");
  ASSERT_TRUE(budget);
  EXPECT_EQ(budget->status().disruptions_allowed(), 0);
  EXPECT_TRUE(budget->status().disrupted_pods().contains("p"));
  ASSERT_EQ(budget->status().conditions_size(), 1);
  EXPECT_EQ(budget->status().conditions(0).reason(), "InsufficientPods");
}

TEST_F(EvictionTest, IsRefusedInUpstreamsWords) {
  MakePod("p", "web", "Running", true);
  MakeBudget("b", "web", 0);
  Result<> refused = Evict("p");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::kTooManyRequests);
  EXPECT_EQ(refused.error().message(), "Cannot evict pod as it would violate the pod's disruption budget.");
  ASSERT_EQ(refused.error().details()->causes.size(), 1u);
  EXPECT_EQ(refused.error().details()->causes[0].reason, "DisruptionBudget");
  EXPECT_EQ(refused.error().details()->causes[0].message,
            "The disruption budget b needs 2 healthy pods and has 2 currently");
  EXPECT_FALSE(Get<corev1::Pod>("p")->metadata().has_deletion_timestamp());

  // The controller must first observe the changed spec.
  auto budget = Get<Budget>("b");
  budget->mutable_spec()->mutable_min_available()->set_int_val(1);
  ASSERT_TRUE(Update(*budget));
  Result<> later = Evict("p");
  ASSERT_FALSE(later);
  EXPECT_EQ(later.error().details()->retry_after_seconds, 10);
  EXPECT_EQ(later.error().details()->causes[0].message,
            "The disruption budget b is still being processed by the server.");

  MakeBudget("second", "web", 1);
  Result<> two = Evict("p");
  ASSERT_FALSE(two);
  EXPECT_EQ(two.error().code(), Code::kInternal);
  EXPECT_EQ(
      two.error().message(),
      "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.");
}

TEST_F(EvictionTest, SomePodsNeedNoBudget) {
  MakeBudget("b", "web", 0);
  MakePod("pending", "web", "Pending", false);
  MakePod("done", "web", "Succeeded", false);
  MakePod("other", "db", "Running", true);
  for (const char* name : {"pending", "done", "other"}) EXPECT_TRUE(Evict(name)) << name;
  EXPECT_FALSE(Get<corev1::Pod>("done")) << "a finished pod goes at once";
  EXPECT_EQ(Get<Budget>("b")->status().disruptions_allowed(), 0);
}

TEST_F(EvictionTest, UnreadyPodsGoWhereTheBudgetSaysSo) {
  MakeBudget("enough", "a", 0, 2, 2);
  MakeBudget("short", "b", 0, 1, 2);
  MakeBudget("always", "c", 0, 1, 2, "AlwaysAllow");
  for (const char* app : {"a", "b", "c"}) MakePod(app, app, "Running", false);
  EXPECT_TRUE(Evict("a"));
  EXPECT_FALSE(Evict("b"));
  EXPECT_TRUE(Evict("c"));
}

TEST_F(EvictionTest, DryRunsAndPreconditions) {
  MakePod("p", "web", "Running", true);
  MakeBudget("b", "web", 1);
  ASSERT_TRUE(Evict("p", nullptr, true));
  metav1::DeleteOptions dry;
  dry.add_dry_run("All");
  ASSERT_TRUE(Evict("p", &dry));
  EXPECT_EQ(Get<Budget>("b")->status().disruptions_allowed(), 1);
  EXPECT_FALSE(Get<corev1::Pod>("p")->metadata().has_deletion_timestamp());
  metav1::DeleteOptions wrong;
  wrong.mutable_preconditions()->set_uid("nobody");
  Result<> refused = Evict("p", &wrong);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::kConflict);
  EXPECT_NE(refused.error().message().find(
                "Operation cannot be fulfilled on Pod \"p\": the UID in the precondition "
                "(nobody) does not match the UID in record"),
            std::string::npos)
      << refused.error().message();
  Result<> missing = Evict("nobody");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().message(), "pods \"nobody\" not found");
  metav1::DeleteOptions at_once;
  at_once.set_grace_period_seconds(0);
  ASSERT_TRUE(Update(
      [&] {
        auto budget = *Get<Budget>("b");
        budget.mutable_status()->set_disruptions_allowed(1);
        return budget;
      }(),
      &Row("policy", "poddisruptionbudgets/status")));
  ASSERT_TRUE(Evict("p", &at_once));
  EXPECT_FALSE(Get<corev1::Pod>("p"));
}

}  // namespace
}  // namespace keelson::registry
