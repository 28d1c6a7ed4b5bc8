#include "controlplane/controllers/cronjob/plan.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "lib/api/meta.h"
#include "lib/base/wall_time.h"
#include "lib/k8s/field_error.h"

namespace keelson::controllers {
namespace {

using std::chrono::seconds;

constexpr int kYears = 5;                         // search limit
constexpr std::chrono::milliseconds kAfter{100};  // margin for inexact clocks
constexpr char kScheduledAt[] = "batch.kubernetes.io/cronjob-scheduled-timestamp";

bool Has(uint64_t bits, int value) { return bits >> value & 1; }

bool DayMatches(const k8s::CronSchedule& schedule, const CivilTime& c) {
  const bool day = Has(schedule.days, c.day), weekday = Has(schedule.weekdays, c.weekday);
  // When day and weekday are both restricted, either may match.
  const bool any = (schedule.days | schedule.weekdays) & k8s::CronSchedule::kAny;
  return any ? day && weekday : day || weekday;
}

WallTime FloorSeconds(WallTime time) { return std::chrono::floor<seconds>(time); }

// "TZ=Europe/Berlin 0 * * * *": the zone's name.
std::optional<std::string> ZoneInSchedule(const std::string& schedule) {
  for (std::string_view prefix : {"TZ=", "CRON_TZ="}) {
    if (schedule.starts_with(prefix)) {
      return schedule.substr(prefix.size(), schedule.find(' ') - prefix.size());
    }
  }
  return std::nullopt;
}

Result<TimeZone> LoadZone(const std::string& name) {
  if (std::optional<TimeZone> zone = TimeZone::Load(name)) return *zone;
  return Error(Code::kInvalid, fmt::format("provided bad location {}: unknown time zone {}", name, name));
}

}  // namespace

std::optional<WallTime> Timetable::Next(WallTime after) const {
  WallTime time = FloorSeconds(after);
  if (schedule.every_seconds > 0) return time + seconds(schedule.every_seconds);
  time = std::chrono::floor<std::chrono::minutes>(time) + std::chrono::minutes(1);
  const int64_t last_year = zone.At(after).year + kYears;
  for (;;) {
    CivilTime c = zone.At(time);
    if (c.year > last_year) return std::nullopt;
    if (!Has(schedule.months, c.month)) {
      time = zone.FirstAt({c.year, c.month + 1});
    } else if (!DayMatches(schedule, c)) {
      time = zone.FirstAt({c.year, c.month, c.day + 1});
    } else if (!Has(schedule.hours, c.hour)) {
      time += std::chrono::minutes(60 - c.minute);
    } else if (!Has(schedule.minutes, c.minute)) {
      time += std::chrono::minutes(1);
    } else {
      return time;
    }
  }
}

Result<Timetable> TimetableOf(const batchv1::CronJob& cron) {
  const batchv1::CronJobSpec& spec = cron.spec();
  Timetable table;
  KEELSON_ASSIGN_OR_RETURN(table.schedule, k8s::ParseCronSchedule(spec.schedule()));
  if (std::optional<std::string> named = ZoneInSchedule(spec.schedule())) {
    KEELSON_ASSIGN_OR_RETURN(table.zone, LoadZone(*named));
  } else if (spec.has_time_zone()) {
    KEELSON_ASSIGN_OR_RETURN(table.zone, LoadZone(spec.time_zone()));
  } else {
    table.zone = TimeZone::Local();
  }
  return table;
}

Result<DueTime> FindDue(const batchv1::CronJob& cron, const Timetable& table, WallTime now,
                        bool within_deadline) {
  const Error never(Code::kInvalid, "time difference between two schedules is less than 1 second");
  DueTime due;
  due.since = api::FromTime(cron.status().has_last_schedule_time() ? cron.status().last_schedule_time()
                                                                   : cron.metadata().creation_timestamp());
  if (within_deadline && cron.spec().has_starting_deadline_seconds()) {
    due.since = std::max(due.since, now - Span(cron.spec().starting_deadline_seconds()));
  }
  const std::optional<WallTime> first = table.Next(due.since);
  if (!first) return never;
  if (now < *first) return due;
  const std::optional<WallTime> second = table.Next(*first);
  if (!second) return never;
  if (now < *second) {
    due.time = *first;
    due.missed = 1;
    return due;
  }
  // There may be very many missed times, so only the last few are enumerated.
  const auto between = std::chrono::floor<seconds>(*second - *first);
  due.missed = (now - *first) / between + 1;
  std::optional<WallTime> next = table.Next(*first + (due.missed - 2) * between);
  for (; next && *next <= now; next = table.Next(*next)) due.time = *next;
  return due;
}

std::chrono::nanoseconds NextLook(const batchv1::CronJob& cron, const Timetable& table, WallTime now) {
  WallTime from = now;
  if (Result<DueTime> due = FindDue(cron, table, now, false)) {
    if (due->time) {
      from = *due->time;
    } else if (due->missed == 0) {
      from = due->since;
    }
  }
  const std::optional<WallTime> next = table.Next(from);
  if (!next) return std::chrono::hours(24);
  return *next + kAfter - now;
}

std::string JobNameAt(const batchv1::CronJob& cron, WallTime time) {
  const auto minutes = std::chrono::floor<std::chrono::minutes>(time.time_since_epoch()).count();
  return fmt::format("{}-{}", cron.metadata().name(), minutes);
}

batchv1::Job JobAt(const batchv1::CronJob& cron, WallTime time) {
  const batchv1::JobTemplateSpec& source = cron.spec().job_template();
  batchv1::Job job;
  metav1::ObjectMeta& meta = *job.mutable_metadata();
  meta.set_name(JobNameAt(cron, time));
  meta.set_namespace_(cron.metadata().namespace_());
  *meta.mutable_labels() = source.metadata().labels();
  *meta.mutable_annotations() = source.metadata().annotations();
  std::optional<TimeZone> zone;
  if (cron.spec().has_time_zone()) zone = TimeZone::Load(cron.spec().time_zone());
  (*meta.mutable_annotations())[kScheduledAt] = FormatIn(zone.value_or(TimeZone::Utc()), time);
  *meta.add_owner_references() = api::ControllerRef(cron);
  *job.mutable_spec() = source.spec();
  return job;
}

std::optional<WallTime> TimeOf(const batchv1::CronJob& cron, const batchv1::Job& job) {
  const auto& annotations = job.metadata().annotations();
  const auto found = annotations.find(kScheduledAt);
  if (found == annotations.end()) return std::nullopt;
  const std::optional<WallTime> time = ParseRfc3339(found->second);
  if (!time || job.metadata().name() != JobNameAt(cron, *time)) return std::nullopt;
  return time;
}

JobPointers JobsToRemove(const batchv1::CronJob& cron, const JobPointers& jobs) {
  const batchv1::CronJobSpec& spec = cron.spec();
  JobPointers remove;
  const auto pick = [&](std::string_view condition, bool limited, int32_t limit) {
    JobPointers ended;
    for (const JobPointer& job : jobs) {
      if (HasCondition(*job, condition)) ended.push_back(job);
    }
    if (!limited || ended.size() <= static_cast<size_t>(limit)) return;
    const auto rank = [](const batchv1::Job& job) {
      const batchv1::JobStatus& status = job.status();
      return std::pair(
          status.has_start_time() ? status.start_time().seconds() : std::numeric_limits<int64_t>::max(),
          job.metadata().name());
    };
    std::sort(ended.begin(), ended.end(),
              [&](const JobPointer& a, const JobPointer& b) { return rank(*a) < rank(*b); });
    remove.insert(remove.end(), ended.begin(), ended.end() - limit);
  };
  pick("Failed", spec.has_failed_jobs_history_limit(), spec.failed_jobs_history_limit());
  pick("Complete", spec.has_successful_jobs_history_limit(), spec.successful_jobs_history_limit());
  return remove;
}

}  // namespace keelson::controllers
