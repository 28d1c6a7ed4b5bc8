#include <fmt/format.h>

#include <algorithm>

#include "ctl/output.h"
#include "ctl/why/denial.h"
#include "ctl/why/job/job_judge.h"
#include "lib/api/meta.h"
#include "lib/k8s/text/cron_schedule.h"

namespace keelson::ctl {

namespace {

std::string NameOf(const CronJobView& view) {
  return view.cron.metadata().namespace_() + "/" + view.cron.metadata().name();
}

std::string Kubectl(const CronJobView& view, const std::string& words) {
  return "kubectl -n " + view.cron.metadata().namespace_() + " " + words;
}

std::string Ago(const CronJobView& view, const metav1::Time& time) {
  return ShortDuration(std::chrono::duration_cast<std::chrono::seconds>(view.now - api::FromTime(time))) +
         " ago";
}

bool IsFailed(const batchv1::Job& job) {
  return std::any_of(
      job.status().conditions().begin(), job.status().conditions().end(),
      [](const auto& condition) { return condition.type() == "Failed" && condition.status() == "True"; });
}

// What the controller says when it starts no Job. An event of a Job that was started later ends it.
void JudgeEvents(const CronJobView& view, std::vector<Problem>& out) {
  const corev1::Event* last =
      LastOf(view.events, {"SuccessfulCreate", "FailedCreate", "UnknownTimeZone", "UnparseableSchedule",
                           "InvalidSchedule", "MissSchedule", "TooManyMissedTimes", "JobAlreadyActive"});
  if (!last || last->reason() == "SuccessfulCreate") return;
  const std::string& reason = last->reason();
  const std::string edit = Kubectl(view, "edit cronjob " + view.cron.metadata().name());
  if (reason == "FailedCreate") {
    out.push_back(JudgeRefusal("CronJob " + NameOf(view) + " cannot create its Job",
                               view.cron.metadata().namespace_(), last->message()));
  } else if (reason == "MissSchedule") {
    out.push_back({reason,
                   fmt::format("a Job's start time passed more than startingDeadlineSeconds ({} s) ago",
                               view.cron.spec().starting_deadline_seconds()),
                   {EventText(*last)},
                   {edit}});
  } else if (reason == "TooManyMissedTimes") {
    out.push_back({reason, "more than 100 times for a Job have passed", {EventText(*last)}, {edit}});
  } else if (reason == "JobAlreadyActive") {
    if (view.cron.status().active().empty()) return;
    const std::string job = view.cron.metadata().namespace_() + "/" + view.cron.status().active(0).name();
    out.push_back({reason,
                   "the last Job still runs, and concurrencyPolicy is Forbid",
                   {EventText(*last)},
                   {"nodectl why job " + job}});
  } else {
    out.push_back({reason,
                   "the schedule or its time zone is not understood: no Job is started",
                   {EventText(*last)},
                   {edit}});
  }
}

void JudgeLastJob(const CronJobView& view, std::vector<Problem>& out) {
  if (view.jobs.empty() || !IsFailed(view.jobs.back())) return;
  const batchv1::Job& last = view.jobs.back();
  out.push_back({"LastJobFailed",
                 "the last Job, " + last.metadata().name() + ", has failed",
                 {},
                 {"nodectl why job " + last.metadata().namespace_() + "/" + last.metadata().name()}});
}

}  // namespace

WhyReport JudgeCronJob(const CronJobView& view) {
  const batchv1::CronJobSpec& spec = view.cron.spec();
  const batchv1::CronJobStatus& status = view.cron.status();
  WhyReport report{
      fmt::format("CronJob {} with schedule \"{}\"{}: {} active, last started {}", NameOf(view),
                  spec.schedule(), spec.time_zone().empty() ? "" : " in " + spec.time_zone(),
                  status.active_size(),
                  status.has_last_schedule_time() ? Ago(view, status.last_schedule_time()) : "never"),
      {{"cronJob", NameOf(view)},
       {"schedule", spec.schedule()},
       {"suspended", spec.suspend()},
       {"active", status.active_size()},
       {"lastScheduleTime",
        status.has_last_schedule_time() ? api::FormatTime(status.last_schedule_time()) : ""}},
      {}};
  if (spec.suspend()) {
    report.problems.push_back({"Suspended",
                               "the CronJob is suspended (spec.suspend): no Job is started",
                               {},
                               {Kubectl(view, "patch cronjob " + view.cron.metadata().name() +
                                                  " --type=merge -p '{\"spec\":{\"suspend\":false}}'")}});
  } else if (const auto schedule = k8s::ParseCronSchedule(spec.schedule()); !schedule) {
    report.problems.push_back({"UnparseableSchedule",
                               "the schedule is not understood: no Job is started",
                               {schedule.error().message()},
                               {Kubectl(view, "edit cronjob " + view.cron.metadata().name())}});
  } else {
    JudgeEvents(view, report.problems);
  }
  JudgeLastJob(view, report.problems);
  if (report.problems.empty() && !status.has_last_schedule_time()) {
    report.notes.emplace_back(
        "no Job has been started yet: the schedule has not come due since the CronJob was made");
  }
  return report;
}

}  // namespace keelson::ctl
