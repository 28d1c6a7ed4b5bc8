#include "controlplane/controllers/job/failures.h"

#include <gtest/gtest.h>

#include "controlplane/controllers/job/indexes.h"
#include "controlplane/controllers/job/testing/jobs.h"
#include "lib/k8s/pods/pod_util.h"

namespace keelson::controllers {
namespace {

using namespace std::chrono_literals;

const WallTime kNow{std::chrono::seconds(1'800'000'000)};

batchv1::PodFailurePolicyRule& AddRule(batchv1::Job& job, const char* action) {
  auto& rule = *job.mutable_spec()->mutable_pod_failure_policy()->add_rules();
  rule.set_action(action);
  return rule;
}

void OnExit(batchv1::PodFailurePolicyRule& rule, const char* op, std::vector<int> codes,
            const char* container = nullptr) {
  auto& wanted = *rule.mutable_on_exit_codes();
  wanted.set_operator_(op);
  for (int code : codes) wanted.add_values(code);
  if (container) wanted.set_container_name(container);
}

void OnCondition(batchv1::PodFailurePolicyRule& rule, const char* type, const char* status = "True") {
  auto& pattern = *rule.add_on_pod_conditions();
  pattern.set_type(type);
  pattern.set_status(status);
}

corev1::Pod Ended(int code) {
  corev1::Pod pod = PodNamed("p");
  EndPod(pod, code, kNow);
  return pod;
}

corev1::Pod Disrupted() {
  corev1::Pod pod = Ended(137);
  corev1::PodCondition condition;
  condition.set_type("DisruptionTarget");
  condition.set_status("True");
  k8s::SetCondition(*pod.mutable_status(), condition, kNow);
  return pod;
}

TEST(JudgeFailureTest, TheFirstMatchingRuleDecides) {
  batchv1::Job job = JobNamed("j", 1, 1);
  OnCondition(AddRule(job, "Ignore"), "DisruptionTarget");
  OnExit(AddRule(job, "FailIndex"), "In", {3}, "main");
  OnExit(AddRule(job, "Count"), "In", {4});
  OnExit(AddRule(job, "FailJob"), "NotIn", {4, 5});
  corev1::Pod init = PodNamed("p");
  init.mutable_status()->set_phase("Failed");
  auto& status = *init.mutable_status()->add_init_container_statuses();
  status.set_name("setup");
  status.mutable_state()->mutable_terminated()->set_exit_code(9);
  struct Case {
    const char* what;
    corev1::Pod pod;
    std::string action, message;
    bool counts;
  };
  for (const Case& c :
       {Case{"condition", Disrupted(), "Ignore", "", false},
        Case{"named container", Ended(3), "FailIndex", "", true},
        Case{"any container", Ended(4), "Count", "", true},
        Case{"not in", Ended(6), "FailJob",
             "Container main for pod default/p failed with exit code 6 matching FailJob rule at index 3",
             true},
        Case{"init container", init, "FailJob",
             "Container setup for pod default/p failed with exit code 9 matching FailJob rule at index 3",
             true},
        Case{"no rule", Ended(5), "", "", true}, Case{"zero never matches", Ended(0), "", "", true}}) {
    FailureVerdict verdict = JudgeFailure(job, c.pod);
    EXPECT_EQ(verdict.action, c.action) << c.what;
    EXPECT_EQ(verdict.message, c.message) << c.what;
    EXPECT_EQ(verdict.counts, c.counts) << c.what;
  }
  batchv1::Job other = JobNamed("j", 1, 1);
  OnExit(AddRule(other, "FailJob"), "In", {3}, "sidecar");
  OnCondition(AddRule(other, "FailJob"), "DisruptionTarget");
  EXPECT_EQ(JudgeFailure(other, Ended(3)).action, "");
  EXPECT_EQ(JudgeFailure(other, Disrupted()).message,
            "Pod default/p has condition DisruptionTarget matching FailJob rule at index 1");
}

TEST(HasFailedTest, DeletionCountsUnlessReplacementsWait) {
  corev1::Pod going = PodNamed("p");
  going.mutable_status()->set_phase("Running");
  *going.mutable_metadata()->mutable_deletion_timestamp() = api::ToTime(kNow);
  corev1::Pod done = going;
  done.mutable_status()->set_phase("Succeeded");
  batchv1::Job job = JobNamed("j", 1, 1);
  EXPECT_TRUE(HasFailed(going, job));
  EXPECT_FALSE(HasFailed(done, job));
  EXPECT_TRUE(HasFailed(Ended(1), job));
  job.mutable_spec()->set_pod_replacement_policy("Failed");
  EXPECT_FALSE(HasFailed(going, job));
  EXPECT_TRUE(HasFailed(Ended(1), job));
}

TEST(FinishedAtTest, TakesTheBestSource) {
  corev1::Pod pod = PodNamed("p");
  *pod.mutable_metadata()->mutable_creation_timestamp() = api::ToTime(kNow - 100s);
  EXPECT_EQ(FinishedAt(pod), kNow - 100s);
  *pod.mutable_metadata()->mutable_deletion_timestamp() = api::ToTime(kNow);
  pod.mutable_metadata()->set_deletion_grace_period_seconds(30);
  EXPECT_EQ(FinishedAt(pod), kNow - 30s);
  corev1::PodCondition ready;
  ready.set_type("Ready");
  ready.set_status("False");
  k8s::SetCondition(*pod.mutable_status(), ready, kNow - 20s);
  EXPECT_EQ(FinishedAt(pod), kNow - 20s);
  for (auto ago : {9s, 7s}) {
    auto& ended = *pod.mutable_status()->add_container_statuses()->mutable_state()->mutable_terminated();
    *ended.mutable_finished_at() = api::ToTime(kNow - ago);
  }
  EXPECT_EQ(FinishedAt(pod), kNow - 7s);
  for (const char* name : {"setup", "sidecar"}) {
    auto& container = *pod.mutable_spec()->add_init_containers();
    container.set_name(name);
    if (container.name() == "sidecar") container.set_restart_policy("Always");
    auto& status = *pod.mutable_status()->add_init_container_statuses();
    status.set_name(name);
    *status.mutable_state()->mutable_terminated()->mutable_finished_at() = api::ToTime(kNow - 1s);
  }
  EXPECT_EQ(FinishedAt(pod), kNow - 1s) << "a sidecar is the last to end";
  pod.mutable_status()->mutable_init_container_statuses(1)->clear_state();
  EXPECT_EQ(FinishedAt(pod), kNow - 20s) << "the sidecar still runs";
  pod.mutable_status()->mutable_init_container_statuses()->RemoveLast();
  EXPECT_EQ(FinishedAt(pod), kNow - 7s) << "other init containers do not count";
  pod.mutable_status()->add_container_statuses();  // one still runs
  EXPECT_EQ(FinishedAt(pod), kNow - 20s);
}

PodPointer At(int code, std::chrono::seconds ago) {
  auto pod = std::make_shared<corev1::Pod>(PodNamed("p"));
  EndPod(*pod, code, kNow - ago);
  return pod;
}

TEST(BackoffTest, DoublesWithFailuresSinceTheLastSuccess) {
  Backoff backoff = NextBackoff({}, {}, {At(1, 5s), At(1, 3s)});
  EXPECT_EQ(backoff.failures, 2);
  EXPECT_EQ(backoff.last, kNow - 3s);
  backoff = NextBackoff(backoff, {}, {At(1, 2s)});
  EXPECT_EQ(backoff.failures, 3);
  backoff = NextBackoff(backoff, {At(0, 4s)}, {At(1, 5s), At(1, 1s)});
  EXPECT_EQ(backoff.failures, 1);
  EXPECT_EQ(backoff.last, kNow - 1s);
  EXPECT_EQ(NextBackoff(backoff, {At(0, 0s)}, {}).failures, 0);
  EXPECT_EQ(NextBackoff(backoff, {}, {}).failures, 1);
  struct Case {
    int failures;
    std::chrono::seconds ago, left;
  };
  for (const Case& c :
       {Case{0, 0s, 0s}, Case{1, 0s, 10s}, Case{1, 4s, 6s}, Case{2, 0s, 20s}, Case{3, 1s, 39s},
        Case{6, 0s, 320s}, Case{7, 0s, 600s}, Case{99, 0s, 600s}, Case{1, 11s, 0s}}) {
    EXPECT_EQ(BackoffLeft({c.failures, kNow - c.ago}, kNow), c.left) << c.failures;
  }
}

TEST(FailsIndexTest, CountsWhatTheAnnotationsCarry) {
  batchv1::Job job = PerIndexJob("j", 3, 3, 1);
  corev1::Pod pod = Ended(1);
  EXPECT_FALSE(FailsIndex(job, pod));
  EXPECT_EQ(FailuresWith(job, pod).counted, 1);
  (*pod.mutable_metadata()->mutable_annotations())[kIndexFailures] = "1";
  EXPECT_TRUE(FailsIndex(job, pod));
  EXPECT_FALSE(FailsIndex(job, PodNamed("running")));
  OnExit(AddRule(job, "Ignore"), "In", {1});
  OnExit(AddRule(job, "FailIndex"), "In", {2});
  EXPECT_FALSE(FailsIndex(job, pod));
  EXPECT_EQ(FailuresWith(job, pod).ignored, 1);
  EXPECT_EQ(FailuresWith(job, pod).counted, 1);
  EXPECT_TRUE(FailsIndex(job, Ended(2)));
}

TEST(CompletionIndexTest, ReadsTheAnnotation) {
  for (const auto& [text, want] :
       std::vector<std::pair<std::string, std::optional<int32_t>>>{{"0", 0},
                                                                   {"17", 17},
                                                                   {"-1", std::nullopt},
                                                                   {"x", std::nullopt},
                                                                   {"", std::nullopt},
                                                                   {"1x", std::nullopt}}) {
    corev1::Pod pod = PodNamed("p");
    (*pod.mutable_metadata()->mutable_annotations())[kCompletionIndex] = text;
    EXPECT_EQ(CompletionIndex(pod), want) << text;
  }
  EXPECT_FALSE(CompletionIndex(PodNamed("p")));
}

TEST(IndexesTest, SetsAsText) {
  struct Case {
    const char* text;
    int32_t completions;
    std::set<int32_t> more;
    const char* want;
  };
  for (const Case& c : {Case{"", 5, {}, ""}, Case{"1,3-5,7", 10, {}, "1,3-5,7"},
                        Case{"1,3-5,7", 5, {}, "1,3,4"}, Case{"1-2", 5, {0, 3}, "0-3"},
                        Case{"0,2", 5, {1}, "0-2"}, Case{"0,1", 5, {}, "0,1"}, Case{"x,2", 5, {4}, "2,4"},
                        Case{"5-3,1", 9, {}, "1"}, Case{"7", 3, {}, ""}, Case{"", 9, {8, 0, 7}, "0,7,8"}}) {
    EXPECT_EQ(FormatIndexes(With(IndexesBelow(c.text, c.completions), c.more)), c.want) << c.text;
  }
  const IndexRanges ranges = IndexesBelow("1,3-5,7", 10);
  for (int32_t i = 0; i < 10; ++i) {
    EXPECT_EQ(Contains(ranges, i), i == 1 || (i >= 3 && i <= 5) || i == 7) << i;
  }
  EXPECT_EQ(CountCommon(ranges, IndexesBelow("0-4,7-9", 10)), 4);
  EXPECT_EQ(FirstFree(ranges, 3, 10), (std::vector<int32_t>{0, 2, 6}));
  EXPECT_EQ(FirstFree(ranges, 9, 9), (std::vector<int32_t>{0, 2, 6, 8}));
  EXPECT_EQ(FirstFree({}, 2, 1), (std::vector<int32_t>{0}));
}

}  // namespace
}  // namespace keelson::controllers
