#include "controlplane/controllers/job/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "controlplane/controllers/job/testing/jobs.h"
#include "lib/k8s/pods/pod_util.h"

namespace keelson::controllers {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using namespace std::chrono_literals;

const WallTime kNow{std::chrono::seconds(1'800'000'000)};

// "run", "ready", "going", "ok", "bad" (exit 1), "badN" (exit N); with a finalizer.
PodPointer Make(const std::string& name, const std::string& state, std::optional<int32_t> index = {},
                const std::string& failures = "", bool tracked = true) {
  auto pod = std::make_shared<corev1::Pod>(PodNamed(name, {}, "n1"));
  pod->mutable_metadata()->set_uid(name);
  *pod->mutable_metadata()->mutable_creation_timestamp() = api::ToTime(kNow - 100s);
  auto& annotations = *pod->mutable_metadata()->mutable_annotations();
  if (tracked) pod->mutable_metadata()->add_finalizers(kJobTracking);
  if (index) annotations[kCompletionIndex] = std::to_string(*index);
  if (!failures.empty()) annotations[kIndexFailures] = failures;
  pod->mutable_status()->set_phase("Running");
  if (state == "ready") MakeReady(*pod, kNow - 50s);
  if (state == "ok") EndPod(*pod, 0, kNow - 1000s);
  if (state.starts_with("bad")) EndPod(*pod, state == "bad" ? 1 : std::stoi(state.substr(3)), kNow - 1000s);
  if (state == "going") *pod->mutable_metadata()->mutable_deletion_timestamp() = api::ToTime(kNow);
  return pod;
}

JobLook Look(batchv1::Job job, PodPointers pods, std::set<std::string> released = {}) {
  return LookAt(job, std::move(pods), std::move(released), {}, kNow);
}

std::vector<std::string> Names(const PodPointers& pods) {
  std::vector<std::string> out;
  for (const PodPointer& pod : pods) out.push_back(pod->metadata().name());
  return out;
}

batchv1::Job With(batchv1::Job job, const std::function<void(batchv1::Job&)>& change) {
  change(job);
  return job;
}

batchv1::Job SuccessPolicy(batchv1::Job job, const char* indexes, int count = -1) {
  auto& rule = *job.mutable_spec()->mutable_success_policy()->add_rules();
  if (indexes) rule.set_succeeded_indexes(indexes);
  if (count >= 0) rule.set_succeeded_count(count);
  return job;
}

TEST(LookAtTest, DecidesHowAJobEnds) {
  const auto limit = [](int32_t n) {
    return [n](batchv1::Job& job) { job.mutable_spec()->set_backoff_limit(n); };
  };
  const auto on_failure = [](int32_t n) {
    return [n](batchv1::Job& job) {
      job.mutable_spec()->set_backoff_limit(n);
      job.mutable_spec()->mutable_template_()->mutable_spec()->set_restart_policy("OnFailure");
    };
  };
  const auto restarted = [](int32_t n) {
    auto pod = std::make_shared<corev1::Pod>(*Make("r", "run"));
    pod->mutable_status()->add_container_statuses()->set_restart_count(n);
    return pod;
  };
  const auto fail_job = [](batchv1::Job& job) {
    auto& rule = *job.mutable_spec()->mutable_pod_failure_policy()->add_rules();
    rule.set_action("FailJob");
    rule.mutable_on_exit_codes()->set_operator_("In");
    rule.mutable_on_exit_codes()->add_values(42);
  };
  const auto started = [](std::chrono::seconds ago, int64_t deadline, bool suspend = false) {
    return [=](batchv1::Job& job) {
      *job.mutable_status()->mutable_start_time() = api::ToTime(kNow - ago);
      job.mutable_spec()->set_active_deadline_seconds(deadline);
      job.mutable_spec()->set_suspend(suspend);
    };
  };
  const auto announced = [](const char* type, const char* reason) {
    return [=](batchv1::Job& job) {
      *job.mutable_status()->add_conditions() = MakeJobCondition(type, reason, "why", kNow);
    };
  };
  struct Case {
    const char* what;
    batchv1::Job job;
    PodPointers pods;
    std::string finish;
  };
  const batchv1::Job plain = JobNamed("j", 3, 3), per_index = PerIndexJob("j", 3, 3, 0),
                     indexed = IndexedJob("j", 4, 4);
  const auto max_failed = [](batchv1::Job& job) { job.mutable_spec()->set_max_failed_indexes(1); };
  const Case cases[] = {
      {"nothing yet", plain, {Make("a", "run"), Make("b", "ok"), Make("c", "bad")}, ""},
      {"limit reached", With(plain, limit(2)), {Make("a", "bad"), Make("b", "bad")}, ""},
      {"limit exceeded",
       With(plain, limit(1)),
       {Make("a", "bad"), Make("b", "bad")},
       "FailureTarget/BackoffLimitExceeded"},
      {"pods counted already do not count again",
       With(plain, limit(1)),
       {Make("a", "bad"), Make("b", "bad", {}, "", false)},
       ""},
      {"failures of the status count",
       With(plain,
            [](batchv1::Job& job) {
              job.mutable_spec()->set_backoff_limit(1);
              job.mutable_status()->set_failed(1);
              job.mutable_status()->mutable_uncounted_terminated_pods()->add_failed("x");
            }),
       {},
       "FailureTarget/BackoffLimitExceeded"},
      {"noted pods are not counted twice",
       With(plain,
            [](batchv1::Job& job) {
              job.mutable_spec()->set_backoff_limit(1);
              job.mutable_status()->mutable_uncounted_terminated_pods()->add_failed("a");
            }),
       {Make("a", "bad")},
       ""},
      {"restarts below the limit", With(plain, on_failure(3)), {restarted(2)}, ""},
      {"restarts at the limit",
       With(plain, on_failure(3)),
       {restarted(3)},
       "FailureTarget/BackoffLimitExceeded"},
      {"limit 0 allows no restart",
       With(plain, on_failure(0)),
       {restarted(1)},
       "FailureTarget/BackoffLimitExceeded"},
      {"limit 0 without restarts", With(plain, on_failure(0)), {restarted(0)}, ""},
      {"deadline", With(plain, started(60s, 60)), {}, "FailureTarget/DeadlineExceeded"},
      {"before the deadline", With(plain, started(59s, 60)), {}, ""},
      {"a deadline without end", With(plain, started(1h, std::numeric_limits<int64_t>::max())), {}, ""},
      {"suspended time is free", With(plain, started(60s, 60, true)), {}, ""},
      {"failure policy", With(plain, fail_job), {Make("a", "bad42")}, "FailureTarget/PodFailurePolicy"},
      {"failure policy does not match", With(plain, fail_job), {Make("a", "bad41")}, ""},
      {"announced failure is carried out",
       With(plain, announced("FailureTarget", "DeadlineExceeded")),
       {},
       "Failed/DeadlineExceeded"},
      {"announced success outweighs failures",
       With(With(plain, limit(0)), announced("SuccessCriteriaMet", "SuccessPolicy")),
       {Make("a", "bad")},
       "SuccessCriteriaMet/SuccessPolicy"},
      {"failed index, others to come", per_index, {Make("a", "bad", 0)}, ""},
      {"all indexes ended, some failed",
       per_index,
       {Make("a", "bad", 0), Make("b", "ok", 1), Make("c", "ok", 2)},
       "FailureTarget/FailedIndexes"},
      {"failed indexes at the maximum", With(per_index, max_failed), {Make("a", "bad", 0)}, ""},
      {"too many failed indexes",
       With(per_index, max_failed),
       {Make("a", "bad", 0), Make("b", "bad", 1)},
       "FailureTarget/MaxFailedIndexesExceeded"},
      {"success by count",
       SuccessPolicy(indexed, nullptr, 2),
       {Make("a", "ok", 3), Make("b", "ok", 1)},
       "SuccessCriteriaMet/SuccessPolicy"},
      {"too few", SuccessPolicy(indexed, nullptr, 2), {Make("a", "ok", 3), Make("b", "ok", 3)}, ""},
      {"success by indexes",
       SuccessPolicy(indexed, "0,2-3"),
       {Make("a", "ok", 0), Make("b", "ok", 2), Make("c", "ok", 3)},
       "SuccessCriteriaMet/SuccessPolicy"},
      {"an index is missing", SuccessPolicy(indexed, "0,2-3"), {Make("a", "ok", 0), Make("b", "ok", 2)}, ""},
      {"some of the indexes",
       SuccessPolicy(indexed, "0,2-3", 1),
       {Make("b", "ok", 2)},
       "SuccessCriteriaMet/SuccessPolicy"},
      {"none of the indexes", SuccessPolicy(indexed, "0,2-3", 1), {Make("b", "ok", 1)}, ""},
      {"the second rule",
       SuccessPolicy(SuccessPolicy(indexed, "0"), nullptr, 1),
       {Make("b", "ok", 1)},
       "SuccessCriteriaMet/SuccessPolicy"},
  };
  for (const Case& c : cases) {
    const JobLook look = Look(c.job, c.pods);
    EXPECT_EQ(look.finish ? look.finish->type() + "/" + look.finish->reason() : "", c.finish) << c.what;
  }
}

TEST(PlanPodsTest, MakesAndRemoves) {
  struct Case {
    const char* what;
    batchv1::Job job;
    PodPointers pods;
    std::vector<std::string> remove;
    size_t create;
    std::vector<int32_t> indexes;
  };
  const auto only_failed = [](batchv1::Job& job) {
    job.mutable_spec()->set_pod_replacement_policy("Failed");
  };
  const auto suspend = [](batchv1::Job& job) { job.mutable_spec()->set_suspend(true); };
  const batchv1::Job indexed = IndexedJob("j", 4, 3);
  const Case cases[] = {
      {"up to parallelism", JobNamed("j", 5, 2), {}, {}, 2, {}},
      {"up to what is left", JobNamed("j", 3, 3), {Make("a", "ok"), Make("b", "ok")}, {}, 1, {}},
      {"enough run", JobNamed("j", 3, 2), {Make("a", "run"), Make("b", "run")}, {}, 0, {}},
      {"too many run: the newest not ready go",
       JobNamed("j", 3, 1),
       {Make("a", "ready"), Make("b", "run"), Make("c", "run")},
       {"b", "c"},
       0,
       {}},
      {"no completions: parallelism", JobNamed("j", -1, 3), {Make("a", "run")}, {}, 2, {}},
      {"no completions: none after a success",
       JobNamed("j", -1, 3),
       {Make("a", "run"), Make("b", "ok")},
       {},
       0,
       {}},
      {"going ones are replaced at once",
       JobNamed("j", 2, 2),
       {Make("a", "going"), Make("b", "run")},
       {},
       1,
       {}},
      {"or when they have failed",
       With(JobNamed("j", 2, 2), only_failed),
       {Make("a", "going"), Make("b", "run")},
       {},
       0,
       {}},
      {"suspended",
       With(JobNamed("j", 2, 2), suspend),
       {Make("a", "ready"), Make("b", "run")},
       {"b", "a"},
       0,
       {}},
      {"first indexes", indexed, {}, {}, 3, {0, 1, 2}},
      {"indexes that neither run nor are done",
       indexed,
       {Make("a", "ok", 0), Make("b", "run", 2)},
       {},
       2,
       {1, 3}},
      {"duplicates, bad and missing indexes go",
       indexed,
       {Make("a", "ready", 0), Make("b", "run", 0), Make("c", "run", 9), Make("d", "run")},
       {"c", "d", "b"},
       0,
       {}},
      {"a going index is free", indexed, {Make("a", "going", 0)}, {}, 3, {0, 1, 2}},
      {"unless replacements wait", With(indexed, only_failed), {Make("a", "going", 0)}, {}, 2, {1, 2}},
      {"a failed index is not tried again", PerIndexJob("j", 3, 3, 0), {Make("a", "bad", 1)}, {}, 2, {0, 2}},
  };
  for (const Case& c : cases) {
    JobLook look = Look(c.job, c.pods);
    look.backoff = {};
    const PodPlan plan = PlanPods(look);
    EXPECT_EQ(Names(plan.remove), c.remove) << c.what;
    EXPECT_EQ(plan.create, c.create) << c.what;
    EXPECT_EQ(plan.indexes, c.indexes) << c.what;
  }
}

TEST(PlanPodsTest, FailuresDelayTheNextPods) {
  JobLook look = LookAt(JobNamed("j", 3, 2), {Make("a", "run")}, {}, {2, kNow - 5s}, kNow);
  PodPlan plan = PlanPods(look);
  EXPECT_EQ(plan.create, 0u);
  EXPECT_EQ(plan.wait, std::chrono::nanoseconds(15s));
  look.now = kNow + 15s;
  EXPECT_EQ(PlanPods(look).create, 1u);

  // With a limit an index each index waits for itself.
  const auto fresh = std::make_shared<corev1::Pod>(*Make("a", "bad", 0, "1"));
  EndPod(*fresh, 1, kNow - 5s);
  look = Look(PerIndexJob("j", 2, 2, 5), {fresh});
  plan = PlanPods(look);
  EXPECT_THAT(plan.indexes, ElementsAre(1));
  EXPECT_EQ(plan.wait, std::chrono::nanoseconds(15s));
  look.now = kNow + 15s;
  EXPECT_THAT(PlanPods(look).indexes, ElementsAre(0, 1));
}

TEST(NewJobPodTest, CarriesItsIndex) {
  batchv1::Job job = PerIndexJob("j", 12, 3, 2);
  corev1::PodSpec& spec = *job.mutable_spec()->mutable_template_()->mutable_spec();
  *spec.add_init_containers() = spec.containers(0);
  *spec.add_containers() = spec.containers(0);
  spec.mutable_containers(1)->add_env()->set_name("JOB_COMPLETION_INDEX");
  JobLook look = Look(job, {Make("old", "bad", 11, "1")});
  const corev1::Pod pod = NewJobPod(look, 11);
  EXPECT_EQ(pod.metadata().generate_name(), "j-11-");
  EXPECT_EQ(pod.spec().hostname(), "j-11");
  EXPECT_EQ(pod.metadata().annotations().at(kCompletionIndex), "11");
  EXPECT_EQ(pod.metadata().labels().at(kCompletionIndex), "11");
  EXPECT_EQ(pod.metadata().annotations().at(kIndexFailures), "2");
  EXPECT_FALSE(pod.metadata().annotations().contains(kIndexIgnoredFailures));
  EXPECT_THAT(pod.metadata().finalizers(), ElementsAre(kJobTracking));
  EXPECT_EQ(pod.spec().init_containers(0).env(0).value_from().field_ref().field_path(),
            "metadata.labels['batch.kubernetes.io/job-completion-index']");
  EXPECT_EQ(pod.spec().containers(0).env_size(), 1);
  EXPECT_FALSE(pod.spec().containers(1).env(0).has_value_from());  // the user's own
  EXPECT_EQ(NewJobPod(look, 3).metadata().annotations().at(kIndexFailures), "0");

  look = Look(IndexedJob(std::string(60, 'x'), 12, 3), {});
  EXPECT_EQ(NewJobPod(look, 7).metadata().generate_name(), std::string(55, 'x') + "-7-");
  look = Look(JobNamed("plain", 1, 1), {});
  EXPECT_EQ(NewJobPod(look, {}).metadata().generate_name(), "plain-");
  EXPECT_TRUE(NewJobPod(look, {}).spec().hostname().empty());
}

TEST(CountEndedTest, NotesPodsByUidUntilTheirFinalizerIsOff) {
  batchv1::Job job = JobNamed("j", 5, 5);
  job.mutable_status()->set_succeeded(1);
  job.mutable_status()->mutable_uncounted_terminated_pods()->add_succeeded("gone");
  JobLook look = Look(
      job,
      {Make("a", "ok"), Make("b", "bad"), Make("c", "run"), Make("d", "ok", {}, "", false), Make("e", "ok")},
      {"e"});
  EXPECT_EQ(look.succeeded, 3);  // counted, noted, a
  Tally tally = CountEnded(look);
  const batchv1::JobStatus& status = look.job.status();
  EXPECT_TRUE(tally.changed);
  EXPECT_THAT(Names(tally.release), ElementsAre("a", "b"));
  EXPECT_EQ(status.succeeded(), 2);
  EXPECT_THAT(status.uncounted_terminated_pods().succeeded(), ElementsAre("a"));
  EXPECT_THAT(status.uncounted_terminated_pods().failed(), ElementsAre("b"));
  EXPECT_EQ(status.active(), 1);
  tally.tracked = {"b", "c"};  // b's finalizer could not be taken off
  EXPECT_TRUE(SettleCounted(*look.job.mutable_status(), tally.tracked));
  EXPECT_EQ(status.succeeded(), 3);
  EXPECT_EQ(status.failed(), 0);
  EXPECT_FALSE(SettleCounted(*look.job.mutable_status(), tally.tracked));
}

TEST(CountEndedTest, IndexesNeedNoUids) {
  batchv1::Job job = IndexedJob("j", 5, 5);
  job.mutable_status()->set_completed_indexes("0");
  job.mutable_status()->set_succeeded(1);
  JobLook look = Look(job, {Make("a", "ok", 1), Make("b", "ok", 0), Make("c", "ok", 8), Make("d", "bad", 2),
                            Make("e", "ok", 1)});
  const Tally tally = CountEnded(look);
  EXPECT_THAT(Names(tally.release), ElementsAre("a", "b", "c", "d", "e"));
  EXPECT_EQ(look.job.status().completed_indexes(), "0,1");
  EXPECT_EQ(look.job.status().succeeded(), 2);
  EXPECT_THAT(look.job.status().uncounted_terminated_pods().succeeded(), IsEmpty());
  EXPECT_THAT(look.job.status().uncounted_terminated_pods().failed(), ElementsAre("d"));
}

TEST(CountEndedTest, KeepsTheLastFailedPodOfAnIndexUntilItIsReplaced) {
  const batchv1::Job job = PerIndexJob("j", 3, 3, 2);
  const PodPointers failed = {Make("a", "bad", 0), Make("b", "bad", 0, "1"), Make("c", "bad", 1, "2")};
  JobLook look = Look(job, failed);
  EXPECT_THAT(Names(CountEnded(look).release), ElementsAre("a", "c"));  // index 1 has failed permanently
  EXPECT_EQ(look.job.status().failed_indexes(), "1");
  look = Look(job, {failed[0], failed[1], failed[2], Make("d", "run", 0, "2")});
  EXPECT_THAT(Names(CountEnded(look).release), ElementsAre("a", "b", "c"));
}

TEST(CountEndedTest, IgnoredFailuresAreReleasedAndNotCounted) {
  batchv1::Job job = JobNamed("j", 1, 1);
  auto& rule = *job.mutable_spec()->mutable_pod_failure_policy()->add_rules();
  rule.set_action("Ignore");
  rule.mutable_on_exit_codes()->set_operator_("In");
  rule.mutable_on_exit_codes()->add_values(7);
  JobLook look = Look(job, {Make("a", "bad7"), Make("b", "bad")});
  EXPECT_EQ(look.failed, 1);
  EXPECT_THAT(Names(CountEnded(look).release), ElementsAre("a", "b"));
  EXPECT_THAT(look.job.status().uncounted_terminated_pods().failed(), ElementsAre("b"));
}

TEST(CountEndedTest, HoldsFiveHundredAtATime) {
  PodPointers pods;
  for (int i = 0; i < 600; ++i) pods.push_back(Make("p" + std::to_string(i), "ok"));
  JobLook look = Look(JobNamed("j", 600, 600), pods);
  look.finish = MakeJobCondition("Complete", "", "", kNow);
  const Tally tally = CountEnded(look);
  EXPECT_EQ(tally.release.size(), 500u);
  EXPECT_TRUE(tally.partial);
  SettleCounted(*look.job.mutable_status(), {});
  EXPECT_FALSE(Finish(look, tally));
}

TEST(CountEndedTest, AJobThatFailsTakesItsRunningPodsAlong) {
  batchv1::Job job = JobNamed("j", 3, 3);
  job.mutable_spec()->set_backoff_limit(0);
  JobLook look = Look(job, {Make("a", "bad"), Make("b", "run")});
  ASSERT_TRUE(look.finish);
  look.active_count = 0;  // b was deleted
  Tally tally = CountEnded(look);
  EXPECT_THAT(Names(tally.release), ElementsAre("a", "b"));
  EXPECT_THAT(look.job.status().uncounted_terminated_pods().failed(), ElementsAre("a", "b"));
  EXPECT_THAT(TrueConditions(look.job), ElementsAre("FailureTarget/BackoffLimitExceeded"));
  SettleCounted(*look.job.mutable_status(), {});
  look.terminating = 1;
  EXPECT_FALSE(Finish(look, tally));
  look.terminating = 0;
  EXPECT_TRUE(Finish(look, tally));
  EXPECT_THAT(TrueConditions(look.job),
              ElementsAre("FailureTarget/BackoffLimitExceeded", "Failed/BackoffLimitExceeded"));
  EXPECT_FALSE(look.job.status().has_completion_time());
}

TEST(CountEndedTest, WhatEndsHasBegun) {
  batchv1::Job job = JobNamed("j", 3, 3);
  job.mutable_spec()->set_backoff_limit(0);
  job.mutable_spec()->set_suspend(true);
  job.mutable_status()->set_failed(1);
  JobLook look = Look(job, {});
  EXPECT_FALSE(look.job.status().has_start_time());
  CountEnded(look);
  EXPECT_TRUE(look.job.status().has_start_time());
}

TEST(SettleTest, SuspendsAndResumes) {
  batchv1::Job job = JobNamed("j", 1, 1);
  JobLook look = Look(job, {});
  EXPECT_EQ(Settle(look, true), "");  // never suspended: nothing to say
  EXPECT_TRUE(look.job.status().has_start_time());
  look.job.mutable_spec()->set_suspend(true);
  EXPECT_EQ(Settle(look, false), "");  // pods are still to be removed
  EXPECT_EQ(Settle(look, true), "Suspended");
  EXPECT_FALSE(look.job.status().has_start_time());
  EXPECT_EQ(Settle(look, true), "");
  EXPECT_THAT(TrueConditions(look.job), ElementsAre("Suspended/JobSuspended"));
  look.job.mutable_spec()->set_suspend(false);
  look.now = kNow + 9s;
  EXPECT_EQ(Settle(look, true), "Resumed");
  EXPECT_EQ(look.job.status().start_time().seconds(), api::ToTime(kNow + 9s).seconds());
  EXPECT_EQ(ConditionOf(look.job, "Suspended")->status(), "False");
  EXPECT_EQ(ConditionOf(look.job, "Suspended")->reason(), "JobResumed");
}

}  // namespace
}  // namespace keelson::controllers
