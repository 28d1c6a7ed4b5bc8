// When a CronJob's Jobs are due, and what they look like: pure functions.
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

  // The first time after `time`; nullopt when there is none within five years (31 February). A local time
  // that clocks skip does not come; one that they repeat comes twice.
  std::optional<WallTime> Next(WallTime time) const;
};
// Of spec.schedule and spec.timeZone, which exists; by default in the zone of this host. A TZ= within the
// schedule wins. kInvalid in the words of upstream's parser.
Result<Timetable> TimetableOf(const batchv1::CronJob& cron);

struct DueTime {
  std::optional<WallTime> time;  // the latest that has come and was not served; nullopt: none
  WallTime since{};              // what was looked at begins here
  int64_t missed = 0;            // how many times have come, `time` included; about, when they are many
};
inline constexpr int64_t kManyMissed = 100;
// `within_deadline`: times that spec.startingDeadlineSeconds makes too late do not count. kInvalid when the
// schedule has no times.
Result<DueTime> FindDue(const batchv1::CronJob& cron, const Timetable& table, WallTime now,
                        bool within_deadline);
// How long until the next look: just after the next time.
std::chrono::nanoseconds NextLook(const batchv1::CronJob& cron, const Timetable& table, WallTime now);

std::string JobNameAt(const batchv1::CronJob& cron, WallTime time);
batchv1::Job JobAt(const batchv1::CronJob& cron, WallTime time);
// The time that a Job of this CronJob was made for by JobAt(); nullopt: somebody else made it.
std::optional<WallTime> TimeOf(const batchv1::CronJob& cron, const batchv1::Job& job);

using JobPointer = std::shared_ptr<const batchv1::Job>;
using JobPointers = std::vector<JobPointer>;
// Finished Jobs beyond the history limits, those that started first.
JobPointers JobsToRemove(const batchv1::CronJob& cron, const JobPointers& jobs);

}  // namespace keelson::controllers
