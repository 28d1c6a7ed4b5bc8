// CronJobs.
#include <unistd.h>

#include <algorithm>

#include <fmt/format.h>

#include "lib/base/text.h"
#include "lib/k8s/text/cron_schedule.h"
#include "lib/k8s/validation/workload/internal.h"
#include "lib/k8s/validation/workload/job_internal.h"

namespace keelson::k8s {

namespace {

constexpr size_t kNameBytes = 52;  // leaves room for the time that names its jobs
constexpr size_t kZonePartBytes = 14;
constexpr const char* kZones = "/usr/share/zoneinfo";

// A time zone's name is a path below the system's zone files.
bool IsZonePath(std::string_view zone) {
  const auto allowed = [](char c) {
    return isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '-' || c == '_' || c == '+';
  };
  for (;;) {
    const size_t slash = zone.find('/');
    const std::string_view part = zone.substr(0, slash);
    if (part.empty() || part.size() > kZonePartBytes || part == "." || part == ".." || part.front() == '-') {
      return false;
    }
    if (!std::all_of(part.begin(), part.end(), allowed)) return false;
    if (slash == std::string_view::npos) return true;
    zone.remove_prefix(slash + 1);
  }
}

bool IsKnownZone(const std::string& zone) {
  if (zone == "UTC") return true;
  // A host without zone files cannot check the name.
  return access(kZones, R_OK) != 0 || access((std::string(kZones) + "/" + zone).c_str(), R_OK) == 0;
}

void CheckTimeZone(const std::string& zone, const Path& path, FieldErrors& errors) {
  if (zone.empty()) {
    errors.push_back(Invalid(path, zone, "timeZone must be nil or non-empty string"));
    return;
  }
  if (!IsZonePath(zone)) {
    errors.push_back(Invalid(path, zone, fmt::format("unknown time zone {}", zone)));
    return;
  }
  const std::string lower = Lower(zone);
  if (lower == "local") {
    errors.push_back(Invalid(
        path, zone, "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"));
    if (zone == "Local") return;
  }
  if (!IsKnownZone(zone)) errors.push_back(Invalid(path, zone, fmt::format("unknown time zone {}", zone)));
}

void CheckSchedule(const batchv1::CronJobSpec& spec, const batchv1::CronJobSpec* old, const Path& path,
                   FieldErrors& errors) {
  const std::string& schedule = spec.schedule();
  if (schedule.empty()) {
    errors.push_back(Required(path));
    return;
  }
  if (const Result<CronSchedule> parsed = ParseCronSchedule(schedule); !parsed) {
    errors.push_back(Invalid(path, schedule, parsed.error().message()));
  }
  if (schedule.find("TZ") == std::string::npos) return;
  // CronJobs from before timeZone existed may keep TZ in the schedule.
  const bool had_zone = old && old->schedule().find("TZ") != std::string::npos;
  if (!had_zone) {
    errors.push_back(
        Invalid(path, schedule, "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"));
  } else if (spec.has_time_zone()) {
    errors.push_back(Invalid(path, schedule, "cannot use both timeZone field and TZ or CRON_TZ in schedule"));
  }
}

void CheckSpec(const batchv1::CronJobSpec& spec, const batchv1::CronJobSpec* old, FieldErrors& errors) {
  const Path path("spec");
  CheckSchedule(spec, old, path.Child("schedule"), errors);
  CheckNonNegative(spec.starting_deadline_seconds(), path.Child("startingDeadlineSeconds"), errors);
  const bool same_zone =
      old && old->has_time_zone() == spec.has_time_zone() && old->time_zone() == spec.time_zone();
  if (spec.has_time_zone() && !same_zone) CheckTimeZone(spec.time_zone(), path.Child("timeZone"), errors);
  CheckEnum(spec.concurrency_policy(), {"Allow", "Forbid", "Replace"}, path.Child("concurrencyPolicy"),
            errors);
  const Path at = path.Child("jobTemplate"), job = at.Child("spec");
  const batchv1::JobSpec& job_spec = spec.job_template().spec();
  CheckJobSpec(job_spec, job, errors);
  if (job_spec.has_selector()) {
    errors.push_back(
        InvalidObject(job.Child("selector"), job_spec.selector(), "`selector` will be auto-generated"));
  }
  if (job_spec.manual_selector()) {
    errors.push_back({FieldError::Type::kNotSupported, job.Child("manualSelector").ToString(), "true",
                      "supported values: \"nil\", \"false\""});
  }
  CheckNonNegative(spec.successful_jobs_history_limit(), path.Child("successfulJobsHistoryLimit"), errors);
  CheckNonNegative(spec.failed_jobs_history_limit(), path.Child("failedJobsHistoryLimit"), errors);
}

}  // namespace

void CheckCronJob(const batchv1::CronJob& object, FieldErrors& errors) {
  CheckSpec(object.spec(), nullptr, errors);
  if (object.metadata().name().size() <= kNameBytes) return;
  errors.push_back(Invalid(Path("metadata").Child("name"), object.metadata().name(),
                           "must be no more than 52 characters"));
}

void CheckCronJobUpdate(const batchv1::CronJob& object, const batchv1::CronJob& old, FieldErrors& errors) {
  CheckSpec(object.spec(), &old.spec(), errors);
}

}  // namespace keelson::k8s
