// When a CronJob is due, and the Job to create. Pure functions.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "controlplane/controllers/cronjob/time_zone.h"
#include "controlplane/controllers/job/failures.h"
#include "lib/base/error.h"
#include "lib/k8s/text/cron_schedule.h"

namespace keelson::controllers {

struct Timetable {
  k8s::CronSchedule schedule;
  TimeZone zone = TimeZone::Utc();

  // The first scheduled time after `time`; nullopt when there is none within five years (31 February). A
  // local time that a DST change skips does not occur; one that a DST change repeats occurs twice.
  std::optional<WallTime> Next(WallTime time) const;
};
// Parses spec.schedule, in spec.timeZone (which must exist) or the host's time zone. A TZ= prefix in the
// schedule takes precedence. kInvalid with the message of upstream's parser.
Result<Timetable> TimetableOf(const batchv1::CronJob& cron);

struct DueTime {
  std::optional<WallTime> time;  // the latest unmet time; nullopt: none
  WallTime since{};              // start of the interval that was searched
  int64_t missed = 0;            // number of unmet times including `time`; approximate when large
};
inline constexpr int64_t kManyMissed = 100;
// Finds the latest scheduled time that has passed without a Job. `within_deadline`: ignores times older than
// spec.startingDeadlineSeconds. kInvalid when the schedule never occurs.
Result<DueTime> FindDue(const batchv1::CronJob& cron, const Timetable& table, WallTime now,
                        bool within_deadline);
// Time until just after the next scheduled time, for the requeue.
std::chrono::nanoseconds NextLook(const batchv1::CronJob& cron, const Timetable& table, WallTime now);

// The name of the Job for the scheduled time `time`.
std::string JobNameAt(const batchv1::CronJob& cron, WallTime time);
batchv1::Job JobAt(const batchv1::CronJob& cron, WallTime time);
// The scheduled time of a Job made by JobAt() for this CronJob; nullopt for any other Job.
std::optional<WallTime> TimeOf(const batchv1::CronJob& cron, const batchv1::Job& job);

using JobPointer = std::shared_ptr<const batchv1::Job>;
using JobPointers = std::vector<JobPointer>;
// Finished Jobs beyond the history limits, oldest start time first.
JobPointers JobsToRemove(const batchv1::CronJob& cron, const JobPointers& jobs);

}  // namespace keelson::controllers
