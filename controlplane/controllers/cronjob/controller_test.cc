#include "controlplane/controllers/cronjob/controller.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controlplane/controllers/job/testing/jobs.h"
#include "controlplane/controllers/testing/cluster.h"

namespace keelson::controllers {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::StartsWith;
using namespace std::chrono_literals;

class CronJobTest : public ::testing::Test {
 protected:
  // On the hour, so that "* * * * *" is due a minute later.
  CronJobTest() {
    const auto into = cluster_.clock.Now().time_since_epoch() % 1h;
    cluster_.clock.Advance(1h - into);
  }
  static batchv1::CronJob Cron(const std::string& schedule) {
    batchv1::CronJob cron;
    cron.mutable_metadata()->set_name("c");
    cron.mutable_metadata()->set_namespace_("default");
    cron.mutable_spec()->set_schedule(schedule);
    *cron.mutable_spec()->mutable_job_template()->mutable_spec() = JobNamed("x", 1, 1).spec();
    cron.mutable_spec()->set_time_zone("UTC");
    k8s::SetDefaults(cron);
    return cron;
  }
  void Start(const batchv1::CronJob& cron) {
    ASSERT_TRUE(cluster_.api.Create(cron));
    Restart();
  }
  void Restart() {
    cluster_.Stop();
    controller_ = &cluster_.Make<CronJobController>();
    cluster_.Start();
    cluster_.Drain({controller_});
  }
  void Wait(std::chrono::seconds time) { cluster_.Advance(time, {controller_}); }
  void Change(const std::function<void(batchv1::CronJobSpec&)>& change) {
    batchv1::CronJob cron = cluster_.Get<batchv1::CronJob>("default", "c");
    change(*cron.mutable_spec());
    ASSERT_TRUE(cluster_.api.Update(cron));
    cluster_.Drain({controller_});
  }
  batchv1::CronJobStatus Status() { return cluster_.Get<batchv1::CronJob>("default", "c").status(); }
  std::vector<batchv1::Job> Jobs() { return cluster_.List<batchv1::Job>("default"); }
  void End(const batchv1::Job& which, const char* condition = "Complete") {
    batchv1::Job job = which;
    *job.mutable_status()->add_conditions() = MakeJobCondition(condition, "", "", cluster_.clock.Now());
    *job.mutable_status()->mutable_start_time() = job.metadata().creation_timestamp();
    if (condition == std::string("Complete")) {
      *job.mutable_status()->mutable_completion_time() = api::ToTime(cluster_.clock.Now());
    }
    cluster_.fake->Put(job);
    cluster_.Drain({controller_});
  }

  TestCluster cluster_;
  CronJobController* controller_ = nullptr;
};

TEST_F(CronJobTest, MakesAJobEachTime) {
  Start(Cron("* * * * *"));
  EXPECT_TRUE(Jobs().empty());
  Wait(59s);
  EXPECT_TRUE(Jobs().empty());
  Wait(2s);
  ASSERT_EQ(Jobs().size(), 1u);
  const batchv1::Job job = Jobs()[0];
  EXPECT_EQ(job.spec().completions(), 1);
  ASSERT_EQ(Status().active_size(), 1);
  EXPECT_EQ(Status().active(0).name(), job.metadata().name());
  EXPECT_EQ(Status().active(0).kind(), "Job");
  EXPECT_EQ(Status().last_schedule_time().seconds() % 60, 0);
  End(job);
  EXPECT_EQ(Status().active_size(), 0);
  EXPECT_TRUE(Status().has_last_successful_time());
  Wait(60s);
  EXPECT_EQ(Jobs().size(), 2u);
  EXPECT_TRUE(cluster_.errors.empty());
  EXPECT_THAT(cluster_.Events(), AllOf(Contains("SuccessfulCreate: Created job " + job.metadata().name()),
                                       Contains("SawCompletedJob: Saw completed job: " +
                                                job.metadata().name() + ", condition: Complete")));
}

TEST_F(CronJobTest, ConcurrencyPolicies) {
  struct Case {
    const char* policy;
    size_t jobs;
    int active;
    std::string event;
  };
  for (const Case& c :
       {Case{"Allow", 2, 2, "SuccessfulCreate: Created job c-"},
        Case{
            "Forbid", 1, 1,
            "JobAlreadyActive: Not starting job because prior execution is running and concurrency policy is "
            "Forbid"},
        Case{"Replace", 1, 1, "SuccessfulDelete: Deleted job c-"}}) {
    TestCluster cluster;
    cluster.clock.Advance(1h - cluster.clock.Now().time_since_epoch() % 1h);
    batchv1::CronJob cron = Cron("* * * * *");
    cron.mutable_spec()->set_concurrency_policy(c.policy);
    ASSERT_TRUE(cluster.api.Create(cron));
    auto& controller = cluster.Make<CronJobController>();
    cluster.Start();
    for (int i = 0; i < 2; ++i) cluster.Advance(61s, {&controller});
    EXPECT_EQ(cluster.List<batchv1::Job>().size(), c.jobs) << c.policy;
    EXPECT_EQ(cluster.Get<batchv1::CronJob>("default", "c").status().active_size(), c.active) << c.policy;
    EXPECT_THAT(cluster.Events(), Contains(StartsWith(c.event))) << c.policy;
  }
}

TEST_F(CronJobTest, ForbiddenTimesAreMadeUpForWhenTheJobEnds) {
  batchv1::CronJob cron = Cron("* * * * *");
  cron.mutable_spec()->set_concurrency_policy("Forbid");
  Start(cron);
  Wait(61s);
  Wait(60s);
  ASSERT_EQ(Jobs().size(), 1u);
  End(Jobs()[0]);
  EXPECT_EQ(Jobs().size(), 2u);
}

TEST_F(CronJobTest, StartingDeadline) {
  batchv1::CronJob cron = Cron("0 * * * *");
  cron.mutable_spec()->set_starting_deadline_seconds(30);
  Start(cron);
  cluster_.Stop();
  cluster_.clock.Advance(1h + 31s);
  Restart();
  EXPECT_TRUE(Jobs().empty());  // too late for that one
  cluster_.Stop();
  cluster_.clock.Advance(1h - 2s);
  Restart();
  EXPECT_EQ(Jobs().size(), 1u);
}

TEST_F(CronJobTest, ManyMissedTimesMakeOneJobAndAWarning) {
  Start(Cron("* * * * *"));
  cluster_.Stop();
  cluster_.clock.Advance(101min);
  Restart();
  EXPECT_EQ(Jobs().size(), 1u);
  EXPECT_THAT(cluster_.Events(), Contains("TooManyMissedTimes: too many missed start times. Set or decrease "
                                          ".spec.startingDeadlineSeconds or check clock skew"));
}

TEST_F(CronJobTest, SuspendedOnesWait) {
  Start(Cron("* * * * *"));
  Change([](batchv1::CronJobSpec& spec) { spec.set_suspend(true); });
  Wait(150s);
  EXPECT_TRUE(Jobs().empty());
  Change([](batchv1::CronJobSpec& spec) { spec.set_suspend(false); });
  EXPECT_EQ(Jobs().size(), 1u);  // the last of those that were missed
}

TEST_F(CronJobTest, ANewScheduleMakesUpForNothing) {
  Start(Cron("0 0 1 1 *"));
  Wait(300s);
  Change([](batchv1::CronJobSpec& spec) { spec.set_schedule("* * * * *"); });
  EXPECT_TRUE(Jobs().empty());
  Wait(61s);
  EXPECT_EQ(Jobs().size(), 1u);
}

TEST_F(CronJobTest, HistoryLimits) {
  batchv1::CronJob cron = Cron("* * * * *");
  cron.mutable_spec()->set_successful_jobs_history_limit(2);
  cron.mutable_spec()->set_failed_jobs_history_limit(0);
  Start(cron);
  for (int i = 0; i < 5; ++i) {
    Wait(61s - std::chrono::seconds(i > 0));
    for (const auto& job : Jobs()) {
      if (!IsFinished(job)) End(job, i == 3 ? "Failed" : "Complete");
    }
  }
  ASSERT_EQ(Jobs().size(), 2u);
  for (const auto& job : Jobs()) EXPECT_TRUE(HasCondition(job, "Complete"));
  EXPECT_EQ(Status().active_size(), 0);
}

TEST_F(CronJobTest, TellsOfWhatItCannotUse) {
  struct Case {
    std::function<void(batchv1::CronJobSpec&)> spec;
    std::string event;
  };
  for (const Case& c :
       {Case{[](auto& spec) { spec.set_time_zone("No/Where"); },
             "UnknownTimeZone: invalid timeZone: \"No/Where\": unknown time zone No/Where"},
        Case{[](auto& spec) { spec.set_schedule("61 * * * *"); },
             "UnparseableSchedule: unparseable schedule: \"61 * * * *\" : end of range (61) above maximum "
             "(59): 61"},
        Case{[](auto& spec) { spec.set_schedule("0 0 31 2 *"); },
             "InvalidSchedule: invalid schedule: 0 0 31 2 * : time difference between two schedules is less "
             "than 1 "
             "second"},
        Case{[](auto& spec) {
               spec.clear_time_zone();
               spec.set_schedule("TZ=UTC * * * * *");
             },
             "UnsupportedSchedule: CRON_TZ or TZ used in schedule \"TZ=UTC * * * * *\" is not officially "
             "supported, "
             "see https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details"}}) {
    TestCluster cluster;
    batchv1::CronJob cron = Cron("* * * * *");
    c.spec(*cron.mutable_spec());
    ASSERT_TRUE(cluster.api.Create(cron));
    auto& controller = cluster.Make<CronJobController>();
    cluster.Start();
    cluster.Drain({&controller});
    EXPECT_THAT(cluster.Events(), Contains(c.event));
    EXPECT_TRUE(cluster.List<batchv1::Job>().empty()) << c.event;
  }
}

TEST_F(CronJobTest, JobsThatVanishAreForgottenAndOthersAreStrange) {
  Start(Cron("* * * * *"));
  Wait(61s);
  const std::string name = Jobs()[0].metadata().name();
  batchv1::Job manual = Jobs()[0];
  manual.mutable_metadata()->set_name("by-hand");
  manual.mutable_metadata()->clear_uid();
  manual.mutable_metadata()->clear_resource_version();
  ASSERT_TRUE(cluster_.api.Delete<batchv1::Job>("default", name));
  cluster_.Drain({controller_});
  EXPECT_EQ(Status().active_size(), 0);
  ASSERT_TRUE(cluster_.api.Create(manual));
  cluster_.Drain({controller_});
  EXPECT_EQ(Status().active_size(), 0);
  EXPECT_THAT(
      cluster_.Events(),
      AllOf(Contains("MissingJob: Active job went missing: " + name),
            Contains("UnexpectedJob: Saw a job that the controller did not create or forgot: by-hand")));
}

// Runs one CronJob under controllers that are killed after a number of writes, except the last one, while
// Jobs end and are deleted. Returns the number of killed controllers. Each scheduled time must have exactly
// one Job.
int RunKilled(const batchv1::CronJob& cron, const std::vector<int>& lives) {
  TestCluster cluster;
  cluster.clock.Advance(1h - cluster.clock.Now().time_since_epoch() % 1h);
  EXPECT_TRUE(cluster.api.Create(cron));
  auto left = std::make_shared<std::atomic<int>>(0);
  cluster.fake->SetInterceptor(
      [=](const client::ApiRequest& request) -> std::optional<Result<client::ApiResponse>> {
        if (request.method == "GET" || (*left)-- > 0) return std::nullopt;
        return client::FakeApi::Refuse(Error(Code::kUnavailable, "killed"));
      });
  std::map<std::string, int> runs;
  int died = 0;
  for (int life : lives) {
    cluster.Stop();
    auto& controller = cluster.Make<CronJobController>();
    *left = life;
    cluster.Start();
    cluster.Drain({&controller});
    // The next controller takes over within the same minute.
    for (int i = 0; i < 3 && *left > 0; ++i) {
      cluster.Advance(61s - std::chrono::seconds(!runs.empty()), {&controller});
      for (batchv1::Job job : cluster.List<batchv1::Job>()) {
        if (IsFinished(job)) continue;
        ++runs[job.metadata().name()];
        *job.mutable_status()->add_conditions() = MakeJobCondition("Complete", "", "", cluster.clock.Now());
        *job.mutable_status()->mutable_completion_time() = api::ToTime(cluster.clock.Now());
        cluster.fake->Put(job);
      }
      cluster.Drain({&controller});
    }
    died += *left <= 0;
  }
  EXPECT_GE(runs.size(), 3u);
  for (const auto& [name, count] : runs) EXPECT_EQ(count, 1) << name;
  EXPECT_TRUE(cluster.List<batchv1::Job>().empty());
  EXPECT_EQ(cluster.Get<batchv1::CronJob>("default", "c").status().active_size(), 0);
  return died;
}

TEST_F(CronJobTest, KilledAfterAnyWrite) {
  batchv1::CronJob cron = Cron("* * * * *");
  cron.mutable_spec()->set_successful_jobs_history_limit(0);
  constexpr int kAll = std::numeric_limits<int>::max();
  for (int first = 1;; ++first) {
    for (int second = 1; second <= 3; ++second) {
      SCOPED_TRACE(fmt::format("{} writes, then {}", first, second));
      ASSERT_EQ(RunKilled(cron, {first, second, kAll}) >= 1, true);
    }
    if (RunKilled(cron, {first, kAll}) == 0) {
      EXPECT_GT(first, 6);
      break;
    }
  }
}

}  // namespace
}  // namespace keelson::controllers
