#include "controlplane/controllers/cronjob/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "lib/api/meta.h"

namespace keelson::controllers {
namespace {

using ::testing::ElementsAre;
using namespace std::chrono_literals;

WallTime At(const std::string& text) {
  std::optional<WallTime> time = ParseRfc3339(text);
  EXPECT_TRUE(time) << text;
  return time.value_or(WallTime());
}

batchv1::CronJob Cron(const std::string& schedule, const std::string& zone = "UTC") {
  batchv1::CronJob cron;
  cron.mutable_metadata()->set_name("c");
  cron.mutable_metadata()->set_namespace_("default");
  cron.mutable_spec()->set_schedule(schedule);
  cron.mutable_spec()->set_time_zone(zone);
  return cron;
}

TEST(TimetableTest, NextTimes) {
  struct Case {
    const char *schedule, *zone, *from;
    std::vector<std::string> next;  // in the zone; empty: never
  };
  const Case cases[] = {
      {"*/15 * * * *",
       "UTC",
       "2026-03-01T10:07:30Z",
       {"2026-03-01T10:15:00Z", "2026-03-01T10:30:00Z", "2026-03-01T10:45:00Z", "2026-03-01T11:00:00Z"}},
      {"0 0 * * *", "UTC", "2026-12-31T00:00:00Z", {"2027-01-01T00:00:00Z"}},
      {"@hourly", "UTC", "2026-01-01T00:00:00Z", {"2026-01-01T01:00:00Z"}},
      {"@weekly", "UTC", "2026-01-01T00:00:00Z", {"2026-01-04T00:00:00Z"}},  // a Sunday
      {"@yearly", "UTC", "2026-01-01T00:00:00Z", {"2027-01-01T00:00:00Z"}},
      {"@every 90s", "UTC", "2026-01-01T00:00:00Z", {"2026-01-01T00:01:30Z", "2026-01-01T00:03:00Z"}},
      {"30 6-16/4 * * 1-5", "UTC", "2026-01-02T15:00:00Z", {"2026-01-05T06:30:00Z", "2026-01-05T10:30:00Z"}},
      // Day or weekday, when both are given.
      {"0 0 13 * 5", "UTC", "2026-02-07T00:00:00Z", {"2026-02-13T00:00:00Z", "2026-02-20T00:00:00Z"}},
      {"0 0 29 2 *", "UTC", "2026-01-01T00:00:00Z", {"2028-02-29T00:00:00Z"}},
      {"59 23 31 2 *", "UTC", "2026-01-01T00:00:00Z", {}},
      {"0 9 * * *", "Europe/Berlin", "2026-07-01T08:00:00Z", {"2026-07-02T09:00:00+02:00"}},
      {"0 9 * * *", "Asia/Kolkata", "2026-07-01T00:00:00Z", {"2026-07-01T09:00:00+05:30"}},
      // Clocks go forward from 2 to 3: that day has no 2:30.
      {"30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", {"2026-03-30T02:30:00+02:00"}},
      // Clocks go back from 3 to 2: 2:30 comes twice.
      {"30 2 * * *",
       "Europe/Berlin",
       "2026-10-24T12:00:00Z",
       {"2026-10-25T02:30:00+02:00", "2026-10-25T02:30:00+01:00", "2026-10-26T02:30:00+01:00"}},
      // A day that has no midnight.
      {"0 0 4 11 *", "America/Sao_Paulo", "2018-11-01T00:00:00Z", {"2019-11-04T00:00:00-03:00"}},
      {"0 3 4 11 *", "America/Sao_Paulo", "2018-11-01T00:00:00Z", {"2018-11-04T03:00:00-02:00"}},
      {"TZ=Asia/Tokyo 0 9 * * *", "UTC", "2026-07-01T00:30:00Z", {"2026-07-02T09:00:00+09:00"}},
  };
  for (const Case& c : cases) {
    Result<Timetable> table = TimetableOf(Cron(c.schedule, c.zone));
    ASSERT_TRUE(table) << c.schedule;
    std::optional<WallTime> time = At(c.from);
    for (const std::string& want : c.next) {
      time = table->Next(*time);
      ASSERT_TRUE(time) << c.schedule;
      EXPECT_EQ(FormatIn(table->zone, *time), want) << c.schedule;
    }
    if (c.next.empty()) {
      EXPECT_FALSE(table->Next(*time)) << c.schedule;
    }
  }
}

TEST(TimetableTest, SaysWhatIsWrong) {
  for (const auto& [schedule, zone, want] : std::vector<std::array<const char*, 3>>{
           {"* * *", "UTC", "expected exactly 5 fields, found 3: [* * *]"},
           {"CRON_TZ=No/Where 0 0 * * *", "UTC",
            "provided bad location No/Where: unknown time zone No/Where"},
           {"0 0 * * *", "No/Where", "provided bad location No/Where: unknown time zone No/Where"}}) {
    Result<Timetable> table = TimetableOf(Cron(schedule, zone));
    ASSERT_FALSE(table) << schedule;
    EXPECT_EQ(table.error().message(), want);
  }
}

TEST(TimeZoneTest, KnowsOnlyZones) {
  for (const char* name : {"UTC", "Europe/Berlin", "America/Argentina/Buenos_Aires", "Etc/GMT+5"}) {
    EXPECT_TRUE(TimeZone::Load(name)) << name;
  }
  for (const char* name :
       {"", "Mars/Olympus", "localtime", "Fixed/UTC+01:00:00", "../passwd", "/etc/localtime"}) {
    EXPECT_FALSE(TimeZone::Load(name)) << name;
  }
  EXPECT_EQ(FormatRfc1123(At("2026-01-02T03:04:05Z")), "Fri, 02 Jan 2026 03:04:05 +0000");
}

TEST(FindDueTest, TakesTheLatestMissedTime) {
  struct Case {
    const char *what, *schedule, *last;
    int64_t deadline;  // negative: none
    const char *now, *due;
    int64_t missed;
    const char* next;
  };
  const Case cases[] = {
      {"not yet", "0 * * * *", "2026-01-01T10:00:00Z", -1, "2026-01-01T10:59:59Z", "", 0,
       "2026-01-01T11:00:00Z"},
      {"just now", "0 * * * *", "2026-01-01T10:00:00Z", -1, "2026-01-01T11:00:00Z", "2026-01-01T11:00:00Z", 1,
       "2026-01-01T12:00:00Z"},
      {"several", "0 * * * *", "2026-01-01T10:00:00Z", -1, "2026-01-01T13:30:00Z", "2026-01-01T13:00:00Z", 3,
       "2026-01-01T14:00:00Z"},
      {"very many", "* * * * *", "2026-01-01T10:00:00Z", -1, "2026-01-02T10:00:30Z", "2026-01-02T10:00:00Z",
       1440, "2026-01-02T10:01:00Z"},
      {"too late for the deadline", "0 * * * *", "2026-01-01T10:00:00Z", 60, "2026-01-01T11:05:00Z", "", 0,
       "2026-01-01T12:00:00Z"},
      {"within the deadline", "0 * * * *", "2026-01-01T10:00:00Z", 600, "2026-01-01T11:05:00Z",
       "2026-01-01T11:00:00Z", 1, "2026-01-01T12:00:00Z"},
      {"a deadline without end", "0 * * * *", "2026-01-01T10:00:00Z", std::numeric_limits<int64_t>::max(),
       "2026-01-01T11:05:00Z", "2026-01-01T11:00:00Z", 1, "2026-01-01T12:00:00Z"},
      {"a deadline forgets the many", "* * * * *", "2026-01-01T10:00:00Z", 120, "2026-01-02T10:00:30Z",
       "2026-01-02T10:00:00Z", 2, "2026-01-02T10:01:00Z"},
      {"every keeps its phase", "@every 1h", "2026-01-01T10:10:00Z", -1, "2026-01-01T14:00:00Z",
       "2026-01-01T13:10:00Z", 3, "2026-01-01T14:10:00Z"},
      {"uneven schedule", "30 6-16/4 * * 1-5", "2026-01-02T14:30:00Z", -1, "2026-01-05T11:00:00Z",
       "2026-01-05T10:30:00Z", 2, "2026-01-05T14:30:00Z"},
  };
  for (const Case& c : cases) {
    batchv1::CronJob cron = Cron(c.schedule);
    *cron.mutable_metadata()->mutable_creation_timestamp() = api::ToTime(At(c.last));
    if (c.deadline >= 0) cron.mutable_spec()->set_starting_deadline_seconds(c.deadline);
    const Timetable table = *TimetableOf(cron);
    const WallTime now = At(c.now);
    Result<DueTime> due = FindDue(cron, table, now, true);
    ASSERT_TRUE(due) << c.what;
    EXPECT_EQ(due->time ? FormatIn(table.zone, *due->time) : "", c.due) << c.what;
    if (c.missed > 1 || c.deadline < 0) {
      EXPECT_EQ(due->missed, c.missed) << c.what;
    }
    EXPECT_EQ(
        FormatIn(table.zone, now + std::chrono::floor<std::chrono::seconds>(NextLook(cron, table, now))),
        c.next)
        << c.what;
  }
  const batchv1::CronJob never = Cron("59 23 31 2 *");
  EXPECT_FALSE(FindDue(never, *TimetableOf(never), At("2026-01-01T00:00:00Z"), true));
}

TEST(JobAtTest, IsNamedAfterItsTime) {
  batchv1::CronJob cron = Cron("0 9 * * *", "Europe/Berlin");
  cron.mutable_metadata()->set_uid("u");
  auto& source = *cron.mutable_spec()->mutable_job_template();
  (*source.mutable_metadata()->mutable_labels())["a"] = "b";
  (*source.mutable_metadata()->mutable_annotations())["c"] = "d";
  source.mutable_spec()->set_parallelism(3);
  const WallTime time = At("2026-07-01T07:00:00Z");
  const batchv1::Job job = JobAt(cron, time);
  EXPECT_EQ(job.metadata().name(), "c-29714820");
  EXPECT_EQ(job.metadata().annotations().at("batch.kubernetes.io/cronjob-scheduled-timestamp"),
            "2026-07-01T09:00:00+02:00");
  EXPECT_EQ(job.metadata().annotations().at("c"), "d");
  EXPECT_EQ(job.metadata().labels().at("a"), "b");
  EXPECT_EQ(job.spec().parallelism(), 3);
  EXPECT_EQ(api::ControllerOf(job.metadata())->kind(), "CronJob");
  EXPECT_EQ(TimeOf(cron, job), time);
  batchv1::Job manual = job;
  manual.mutable_metadata()->set_name("by-hand");
  EXPECT_FALSE(TimeOf(cron, manual));
}

TEST(JobsToRemoveTest, KeepsTheLatest) {
  batchv1::CronJob cron = Cron("@hourly");
  JobPointers jobs;
  const auto add = [&](const std::string& name, const char* condition, int started) {
    auto job = std::make_shared<batchv1::Job>();
    job->mutable_metadata()->set_name(name);
    if (started > 0) job->mutable_status()->mutable_start_time()->set_seconds(started);
    if (condition) {
      auto& one = *job->mutable_status()->add_conditions();
      one.set_type(condition);
      one.set_status("True");
    }
    jobs.push_back(job);
  };
  add("s3", "Complete", 3);
  add("s1", "Complete", 1);
  add("s2", "Complete", 2);
  add("f2", "Failed", 2);
  add("f1", "Failed", 1);
  add("running", nullptr, 0);
  const auto names = [&] {
    std::vector<std::string> out;
    for (const auto& job : JobsToRemove(cron, jobs)) out.push_back(job->metadata().name());
    return out;
  };
  EXPECT_TRUE(names().empty());  // no limits
  cron.mutable_spec()->set_successful_jobs_history_limit(1);
  cron.mutable_spec()->set_failed_jobs_history_limit(1);
  EXPECT_THAT(names(), ElementsAre("f1", "s1", "s2"));
  cron.mutable_spec()->set_failed_jobs_history_limit(0);
  EXPECT_THAT(names(), ElementsAre("f1", "f2", "s1", "s2"));
}

}  // namespace
}  // namespace keelson::controllers
