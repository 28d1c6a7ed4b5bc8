#include <gmock/gmock.h>

#include "ctl/why/job/job_judge.h"
#include "ctl/why/testing/objects.h"
#include "lib/api/meta.h"

namespace keelson::ctl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

JobView JobOf(const std::string& status, const std::string& spec = "", const std::string& metadata = "") {
  JobView view;
  view.job = Parse<batchv1::Job>(R"({"metadata":{"namespace":"default","name":"j")" + metadata +
                                 R"(},"spec":{"backoffLimit":6)" + spec + R"(},"status":{)" + status + "}}");
  return view;
}
void AddPod(JobView& view, const std::string& status) {
  view.pods.push_back(Parse<corev1::Pod>(R"({"metadata":{"namespace":"default","name":"j-)" +
                                         std::to_string(view.pods.size()) + R"("},"status":{)" + status +
                                         "}}"));
}
std::string Condition(const std::string& type, const std::string& reason) {
  return R"("conditions":[{"type":")" + type + R"(","status":"True","reason":")" + reason +
         R"(","message":"m"}])";
}
std::vector<std::string> Reasons(const JobView& view) { return ReasonsOf(JudgeJob(view)); }

TEST(WhyJob, AJobInOrderHasNoProblem) {
  EXPECT_THAT(Reasons(JobOf(Condition("Complete", "CompletionsReached") + R"(,"succeeded":1)")), IsEmpty());
  JobView view = JobOf(R"("startTime":"2026-01-01T00:00:00Z","active":1)");
  AddPod(view, R"("phase":"Running")");
  EXPECT_THAT(Reasons(view), IsEmpty());
  EXPECT_EQ(JudgeJob(view).headline, "Job default/j is Running: 1 active, 0 succeeded, 0 failed");
}

TEST(WhyJob, JobsFail) {
  for (const char* reason : {"BackoffLimitExceeded", "DeadlineExceeded", "PodFailurePolicy", "FailedIndexes",
                             "MaxFailedIndexesExceeded"}) {
    for (const char* type : {"Failed", "FailureTarget"}) {
      EXPECT_THAT(Reasons(JobOf(Condition(type, reason))), ElementsAre(reason));
    }
  }
  JobView view = JobOf(Condition("Failed", "BackoffLimitExceeded") + R"(,"failed":1)");
  AddPod(
      view,
      R"("phase":"Failed","containerStatuses":[{"name":"c","state":{"terminated":{"exitCode":3,"reason":"Error"}}}])");
  const WhyReport report = JudgeJob(view);
  EXPECT_TRUE(Shows(report, "pod j-0: container c: Error, exit code 3"));
  EXPECT_TRUE(Advises(report, "kubectl -n default logs j-0"));
  EXPECT_TRUE(Advises(report, "nodectl why pod default/j-0"));
}

TEST(WhyJob, JobsDoNotProgress) {
  EXPECT_THAT(Reasons(JobOf("", R"(,"suspend":true)")), ElementsAre("Suspended"));
  EXPECT_THAT(Reasons(JobOf("", R"(,"managedBy":"example.com/kueue")")), ElementsAre("ManagedElsewhere"));
  EXPECT_THAT(Reasons(JobOf("")), ElementsAre("ControllerSilent"));
  JobView view = JobOf(R"("startTime":"2026-01-01T00:00:00Z")");
  view.events.push_back(ParseEvent("FailedCreate", "Error creating: pods is forbidden: exceeded quota: q"));
  EXPECT_THAT(Reasons(view), ElementsAre("QuotaExceeded"));
  view = JobOf(R"("startTime":"2026-01-01T00:00:00Z")");
  AddPod(
      view,
      R"("phase":"Pending","conditions":[{"type":"PodScheduled","status":"False","message":"0/1 nodes"}])");
  const WhyReport pending = JudgeJob(view);
  EXPECT_THAT(ReasonsOf(pending), ElementsAre("PodsPending"));
  EXPECT_TRUE(Shows(pending, "0/1 nodes"));
  EXPECT_TRUE(Advises(pending, "nodectl why pod default/j-0"));
  view = JobOf(R"("startTime":"2026-01-01T00:00:00Z","failed":2)");
  AddPod(
      view,
      R"("phase":"Running","containerStatuses":[{"name":"c","restartCount":2,"lastState":{"terminated":{"exitCode":4,"reason":"Error"}}}])");
  const WhyReport failing = JudgeJob(view);
  EXPECT_THAT(ReasonsOf(failing), ElementsAre("PodsFailing"));
  EXPECT_TRUE(Shows(failing, "exit code 4"));
  EXPECT_TRUE(Advises(failing, "--previous"));
  EXPECT_THAT(Reasons(JobOf(Condition("Complete", ""), "",
                            R"(,"deletionTimestamp":"2026-01-01T00:00:00Z","finalizers":["orphan"])")),
              ElementsAre("Finalizer"));
}

CronJobView CronJobOf(const std::string& spec, const std::string& status = "") {
  CronJobView view;
  view.cron = Parse<batchv1::CronJob>(R"({"metadata":{"namespace":"default","name":"c"},"spec":{)" + spec +
                                      R"(},"status":{)" + status + "}}");
  return view;
}

TEST(WhyCronJob, JobsAreNotStarted) {
  const std::string daily = R"("schedule":"0 3 * * *")";
  const WhyReport waiting = JudgeCronJob(CronJobOf(daily));
  EXPECT_THAT(ReasonsOf(waiting), IsEmpty());
  EXPECT_EQ(waiting.headline, "CronJob default/c with schedule \"0 3 * * *\": 0 active, last started never");
  EXPECT_THAT(waiting.notes, ElementsAre(HasSubstr("has not come due")));
  EXPECT_THAT(ReasonsOf(JudgeCronJob(CronJobOf(daily + R"(,"suspend":true)"))), ElementsAre("Suspended"));
  EXPECT_THAT(ReasonsOf(JudgeCronJob(CronJobOf(R"("schedule":"61 * * * *")"))),
              ElementsAre("UnparseableSchedule"));
  for (const char* reason :
       {"UnknownTimeZone", "InvalidSchedule", "MissSchedule", "TooManyMissedTimes", "JobAlreadyActive"}) {
    CronJobView view = CronJobOf(daily, R"("active":[{"name":"c-1"}])");
    view.events.push_back(ParseEvent(reason, "m"));
    EXPECT_THAT(ReasonsOf(JudgeCronJob(view)), ElementsAre(reason));
    view.events.push_back(ParseEvent("SuccessfulCreate", "Created job c-2"));
    EXPECT_THAT(ReasonsOf(JudgeCronJob(view)), IsEmpty());
  }
  CronJobView view = CronJobOf(daily);
  view.events.push_back(
      ParseEvent("FailedCreate", "Error creating job: admission webhook \"w\" denied the request: no"));
  EXPECT_THAT(ReasonsOf(JudgeCronJob(view)), ElementsAre("WebhookDenied"));
  view = CronJobOf(daily);
  view.jobs.push_back(JobOf(Condition("Failed", "BackoffLimitExceeded")).job);
  const WhyReport failed = JudgeCronJob(view);
  EXPECT_THAT(ReasonsOf(failed), ElementsAre("LastJobFailed"));
  EXPECT_TRUE(Advises(failed, "nodectl why job default/j"));
}

}  // namespace
}  // namespace keelson::ctl
