#include "controlplane/controllers/job/controller.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controlplane/controllers/job/testing/job_world.h"
#include "controlplane/controllers/testing/metrics.h"
#include "lib/k8s/pods/pod_util.h"

namespace keelson::controllers {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace std::chrono_literals;

int Succeed(const corev1::Pod&) { return 0; }
int Fail(const corev1::Pod&) { return 1; }
int RunOn(const corev1::Pod&) { return -1; }

class JobTest : public ::testing::Test {
 protected:
  void TearDown() override { EXPECT_EQ(world_.Problems(), ""); }
  void Start(const batchv1::Job& job) {
    world_.Start(job);
    world_.Drain();
  }
  batchv1::JobStatus Status() { return world_.Job().status(); }
  int Active() {
    int count = 0;
    for (const auto& pod : world_.Pods()) count += k8s::IsActive(pod);
    return count;
  }
  JobWorld world_;
};

TEST_F(JobTest, RunsToCompletion) {
  Start(JobNamed("j", 3, 2));
  EXPECT_EQ(Active(), 2);
  world_.Wait(2s);
  EXPECT_EQ(Status().active(), 2);
  EXPECT_TRUE(Status().has_start_time());
  for (const auto& pod : world_.Pods()) {
    EXPECT_TRUE(pod.metadata().name().starts_with("j-"));
    EXPECT_TRUE(IsTracked(pod));
    EXPECT_EQ(api::ControllerOf(pod.metadata())->kind(), "Job");
  }
  world_.Round(RunOn);
  EXPECT_EQ(Status().ready(), 2);
  for (int i = 0; i < 4; ++i) world_.Round(Succeed);
  EXPECT_THAT(TrueConditions(world_.Job()),
              ElementsAre("SuccessCriteriaMet/CompletionsReached", "Complete/CompletionsReached"));
  EXPECT_EQ(ConditionOf(world_.Job(), "Complete")->message(), "Reached expected number of succeeded pods");
  EXPECT_EQ(Status().succeeded(), 3);
  EXPECT_EQ(Status().active(), 0);
  EXPECT_EQ(Status().ready(), 0);
  EXPECT_TRUE(Status().has_completion_time());
  EXPECT_EQ(world_.Pods().size(), 3u);
  EXPECT_THAT(world_.cluster.Events(), AllOf(Contains("Completed: Job completed"),
                                             Contains(HasSubstr("SuccessfulCreate: Created pod: j-"))));
}

TEST_F(JobTest, OneSuccessIsEnoughWithoutCompletions) {
  Start(JobNamed("j", -1, 3));
  int ended = 0;
  const auto one = [&](const corev1::Pod&) { return ended++ == 0 ? 0 : -1; };
  world_.Round(one);
  world_.Round(one);
  EXPECT_EQ(Status().succeeded(), 1);
  EXPECT_EQ(Status().active(), 2);
  EXPECT_FALSE(IsFinished(world_.Job()));
  world_.Round(Fail);  // does not matter any more
  EXPECT_THAT(TrueConditions(world_.Job()), Contains("Complete/CompletionsReached"));
  EXPECT_EQ(Status().failed(), 2);
}

TEST_F(JobTest, FailsBeyondItsBackoffLimitAndDeletesTheRest) {
  batchv1::Job job = JobNamed("j", 4, 2);
  job.mutable_spec()->set_backoff_limit(0);
  Start(job);
  world_.Round(RunOn);
  int ended = 0;
  world_.Round([&](const corev1::Pod&) { return ended++ == 0 ? 1 : -1; });
  // The other pod is on its way out: the Job has failed when it is gone.
  EXPECT_THAT(TrueConditions(world_.Job()), ElementsAre("FailureTarget/BackoffLimitExceeded"));
  EXPECT_EQ(Status().terminating(), 1);
  world_.Round(RunOn);
  world_.Round(RunOn);
  EXPECT_THAT(TrueConditions(world_.Job()),
              ElementsAre("FailureTarget/BackoffLimitExceeded", "Failed/BackoffLimitExceeded"));
  EXPECT_EQ(Status().failed(), 2);
  EXPECT_EQ(Status().terminating(), 0);
  EXPECT_THAT(world_.cluster.Events(),
              AllOf(Contains("BackoffLimitExceeded: Job has reached the specified backoff limit"),
                    Contains(HasSubstr("SuccessfulDelete: Deleted pod: j-"))));
}

TEST_F(JobTest, WaitsLongerAfterEachFailure) {
  Start(JobNamed("j", 1, 1));
  const std::chrono::seconds delays[] = {10s, 20s, 40s};
  for (auto delay : delays) {
    for (auto pod : world_.Pods()) {
      if (!k8s::IsActive(pod)) continue;
      EndPod(pod, 1, world_.cluster.clock.Now());
      world_.cluster.fake->Put(pod);
    }
    world_.Wait(delay - 2s);
    EXPECT_EQ(Active(), 0) << delay.count();
    EXPECT_EQ(Status().active(), 0);
    world_.Wait(4s);
    EXPECT_EQ(Active(), 1) << delay.count();
  }
  EXPECT_EQ(Status().failed(), 3);
}

TEST_F(JobTest, EndsAtItsDeadline) {
  batchv1::Job job = JobNamed("j", 1, 1);
  job.mutable_spec()->set_active_deadline_seconds(60);
  Start(job);
  world_.Round(RunOn);
  world_.Wait(40s);
  EXPECT_FALSE(ConditionOf(world_.Job(), "FailureTarget"));
  world_.Wait(12s);
  world_.Round(RunOn);
  world_.Round(RunOn);
  EXPECT_THAT(TrueConditions(world_.Job()), Contains("Failed/DeadlineExceeded"));
  EXPECT_THAT(world_.cluster.Events(),
              Contains("DeadlineExceeded: Job was active longer than specified deadline"));
}

TEST_F(JobTest, SuspendsAndResumes) {
  Start(JobNamed("j", 2, 2));
  world_.Round(RunOn);
  world_.Change([](batchv1::Job& job) { job.mutable_spec()->set_suspend(true); });
  world_.Wait(4s);
  EXPECT_EQ(Active(), 0);
  EXPECT_EQ(Status().terminating(), 2);
  EXPECT_FALSE(Status().has_start_time());
  world_.Round(RunOn);
  EXPECT_TRUE(world_.Pods().empty());
  EXPECT_EQ(Status().failed(), 0);  // they did not fail
  EXPECT_EQ(Status().terminating(), 0);
  EXPECT_THAT(TrueConditions(world_.Job()), ElementsAre("Suspended/JobSuspended"));
  world_.Change([](batchv1::Job& job) { job.mutable_spec()->set_suspend(false); });
  world_.Wait(4s);
  EXPECT_EQ(Active(), 2);
  EXPECT_TRUE(Status().has_start_time());
  for (int i = 0; i < 3; ++i) world_.Round(Succeed);
  EXPECT_TRUE(IsFinished(world_.Job()));
  EXPECT_THAT(world_.cluster.Events(),
              AllOf(Contains("Suspended: Job suspended"), Contains("Resumed: Job resumed")));
}

TEST_F(JobTest, MayFailWhileSuspended) {
  batchv1::Job job = JobNamed("j", 1, 1);
  job.mutable_spec()->set_backoff_limit(0);
  Start(job);
  world_.Round(RunOn);
  corev1::Pod pod = world_.Pods()[0];
  EndPod(pod, 1, world_.cluster.clock.Now());
  world_.cluster.fake->Put(pod);
  world_.Change([](batchv1::Job& j) { j.mutable_spec()->set_suspend(true); });
  world_.Wait(10s);
  EXPECT_THAT(TrueConditions(world_.Job()), Contains("Failed/BackoffLimitExceeded"));
}

TEST_F(JobTest, ScalesWithParallelism) {
  Start(JobNamed("j", 9, 4));
  world_.Round(RunOn);
  world_.Change([](batchv1::Job& job) { job.mutable_spec()->set_parallelism(1); });
  world_.Wait(4s);
  EXPECT_EQ(Active(), 1);
  world_.Round(RunOn);
  EXPECT_EQ(Status().failed(), 0);
  EXPECT_EQ(Status().active(), 1);
  world_.Change([](batchv1::Job& job) { job.mutable_spec()->set_parallelism(3); });
  world_.Wait(4s);
  EXPECT_EQ(Active(), 3);
}

TEST_F(JobTest, ReplacesPodsThatAreDeleted) {
  Start(JobNamed("j", 1, 1));
  world_.Round(RunOn);
  ASSERT_TRUE(world_.cluster.api.Delete<corev1::Pod>("default", world_.Pods()[0].metadata().name()));
  world_.Wait(14s);
  EXPECT_EQ(Active(), 1);  // beside the one that terminates
  EXPECT_EQ(world_.Pods().size(), 2u);
  EXPECT_EQ(Status().failed(), 1);
}

TEST_F(JobTest, ReplacesThemWhenTheyAreGoneIfToldSo) {
  batchv1::Job job = JobNamed("j", 1, 1);
  job.mutable_spec()->set_pod_replacement_policy("Failed");
  Start(job);
  world_.Round(RunOn);
  ASSERT_TRUE(world_.cluster.api.Delete<corev1::Pod>("default", world_.Pods()[0].metadata().name()));
  world_.Wait(30s);
  EXPECT_EQ(Active(), 0);
  EXPECT_EQ(Status().terminating(), 1);
  EXPECT_EQ(Status().failed(), 0);
  world_.Round(RunOn);  // now it has failed
  world_.Wait(10s);
  EXPECT_EQ(Active(), 1);
  EXPECT_EQ(Status().failed(), 1);
}

TEST_F(JobTest, ElasticIndexedJobShrinksAndGrows) {
  Start(IndexedJob("j", 4, 4));
  world_.Round(RunOn);
  world_.Round([](const corev1::Pod& pod) { return *CompletionIndex(pod) == 3 ? 0 : -1; });
  EXPECT_EQ(Status().completed_indexes(), "3");
  const auto size = [](int32_t n) {
    return [n](batchv1::Job& job) {
      job.mutable_spec()->set_parallelism(n);
      job.mutable_spec()->set_completions(n);
    };
  };
  world_.Change(size(2));
  world_.Wait(4s);
  EXPECT_EQ(Active(), 2);
  EXPECT_EQ(Status().completed_indexes(), "");
  EXPECT_EQ(Status().succeeded(), 0);
  world_.Change(size(5));
  world_.Wait(4s);
  EXPECT_EQ(Active(), 5);
  for (int i = 0; i < 3; ++i) world_.Round(Succeed);
  EXPECT_EQ(Status().completed_indexes(), "0-4");
  EXPECT_TRUE(IsFinished(world_.Job()));
}

TEST_F(JobTest, SuccessPolicyEndsItEarly) {
  batchv1::Job job = IndexedJob("j", 3, 3);
  job.mutable_spec()->mutable_success_policy()->add_rules()->set_succeeded_indexes("0");
  const Growth indexes(
      "job_controller_job_finished_indexes_total{status=\"succeeded\",backoffLimit=\"global\"}");
  Start(job);
  world_.Round(RunOn);
  world_.Round([](const corev1::Pod& pod) { return *CompletionIndex(pod) == 0 ? 0 : -1; });
  EXPECT_THAT(TrueConditions(world_.Job()), ElementsAre("SuccessCriteriaMet/SuccessPolicy"));
  world_.Round(RunOn);
  EXPECT_THAT(TrueConditions(world_.Job()),
              ElementsAre("SuccessCriteriaMet/SuccessPolicy", "Complete/SuccessPolicy"));
  EXPECT_EQ(ConditionOf(world_.Job(), "Complete")->message(), "Matched rules at index 0");
  EXPECT_EQ(Status().failed(), 0);
  EXPECT_EQ(Status().succeeded(), 1);
  EXPECT_EQ(indexes(), 1);
}

TEST_F(JobTest, CountsIndexesThatFail) {
  batchv1::Job job = IndexedJob("j", 2, 2);
  job.mutable_spec()->set_backoff_limit_per_index(0);
  const Growth succeeded(
      "job_controller_job_finished_indexes_total{status=\"succeeded\",backoffLimit=\"perIndex\"}"),
      failed("job_controller_job_finished_indexes_total{status=\"failed\",backoffLimit=\"perIndex\"}");
  Start(job);
  world_.Round(RunOn);
  world_.Round([](const corev1::Pod& pod) { return *CompletionIndex(pod); });  // 0 succeeds, 1 fails
  for (int i = 0; i < 3; ++i) world_.Round(RunOn);
  EXPECT_EQ(Status().completed_indexes() + "/" + Status().failed_indexes(), "0/1");
  EXPECT_EQ(succeeded(), 1);
  EXPECT_EQ(failed(), 1);
}

TEST_F(JobTest, FailurePolicyFailsItAtOnce) {
  batchv1::Job job = JobNamed("j", 2, 2);
  auto& rule = *job.mutable_spec()->mutable_pod_failure_policy()->add_rules();
  rule.set_action("FailJob");
  rule.mutable_on_exit_codes()->set_operator_("In");
  rule.mutable_on_exit_codes()->add_values(42);
  job.mutable_spec()->set_pod_replacement_policy("Failed");
  const Growth handled("job_controller_pod_failures_handled_by_failure_policy_total{action=\"FailJob\"}"),
      ended_tracked("job_controller_terminated_pods_tracking_finalizer_total{event=\"add\"}"),
      let_go("job_controller_terminated_pods_tracking_finalizer_total{event=\"delete\"}");
  Start(job);
  world_.Round(RunOn);
  int ended = 0;
  world_.Round([&](const corev1::Pod&) { return ended++ == 0 ? 42 : -1; });
  for (int i = 0; i < 3; ++i) world_.Round(RunOn);
  EXPECT_EQ(handled(), 1);
  EXPECT_GE(ended_tracked(), 1);
  EXPECT_EQ(let_go(), ended_tracked());
  EXPECT_THAT(TrueConditions(world_.Job()), Contains("Failed/PodFailurePolicy"));
  EXPECT_THAT(ConditionOf(world_.Job(), "Failed")->message(),
              HasSubstr("failed with exit code 42 matching FailJob rule at index 0"));
  EXPECT_EQ(Status().failed(), 2);
}

TEST_F(JobTest, AdoptsAndReleasesPods) {
  corev1::Pod stray = PodNamed("stray", {{"batch.kubernetes.io/job-name", "j"}});
  world_.cluster.fake->Put(stray);
  Start(JobNamed("j", 2, 2));
  world_.Wait(4s);
  EXPECT_EQ(world_.Pods().size(), 2u);
  stray = world_.cluster.Get<corev1::Pod>("default", "stray");
  EXPECT_TRUE(IsTracked(stray));
  ASSERT_TRUE(api::ControllerOf(stray.metadata()));
  (*stray.mutable_metadata()->mutable_labels())["batch.kubernetes.io/job-name"] = "other";
  world_.cluster.fake->Put(stray);
  world_.Wait(4s);
  stray = world_.cluster.Get<corev1::Pod>("default", "stray");
  EXPECT_FALSE(IsTracked(stray));
  EXPECT_FALSE(api::ControllerOf(stray.metadata()));
  EXPECT_EQ(world_.Pods().size(), 3u);
}

TEST_F(JobTest, LetsPodsOfADeletedJobGo) {
  Start(JobNamed("j", 2, 2));
  ASSERT_TRUE(world_.cluster.api.Delete<batchv1::Job>("default", "j"));
  world_.Drain();
  ASSERT_EQ(world_.Pods().size(), 2u);  // the garbage collector's
  for (const auto& pod : world_.Pods()) EXPECT_FALSE(IsTracked(pod));

  // Also when the Job went while no controller ran.
  corev1::Pod pod = world_.Pods()[0];
  pod.mutable_metadata()->add_finalizers(kJobTracking);
  world_.cluster.fake->Put(pod);
  world_.Restart();
  world_.Drain();
  EXPECT_FALSE(IsTracked(world_.cluster.Get<corev1::Pod>("default", pod.metadata().name())));
}

TEST_F(JobTest, LeavesJobsOfOtherControllersAlone) {
  batchv1::Job job = JobNamed("j", 1, 1);
  job.mutable_spec()->set_managed_by("example.com/queue");
  const Growth elsewhere(
      "job_controller_jobs_by_external_controller_total{controller_name=\"example.com/queue\"}");
  Start(job);
  EXPECT_EQ(elsewhere(), 1);
  world_.Wait(4s);
  EXPECT_TRUE(world_.Pods().empty());
  EXPECT_FALSE(Status().has_start_time());
}

TEST_F(JobTest, FailureToCreateIsTriedAgain) {
  world_.gate = [](const client::ApiRequest& request) { return request.method != "POST"; };
  Start(JobNamed("j", 3, 3));
  world_.Wait(4s);
  EXPECT_TRUE(world_.Pods().empty());
  EXPECT_EQ(Status().active(), 0);
  world_.gate = {};
  world_.Wait(20s);
  EXPECT_EQ(Active(), 3);
  EXPECT_THAT(world_.cluster.Events(), Contains("FailedCreate: Error creating: killed"));
}

}  // namespace
}  // namespace keelson::controllers
