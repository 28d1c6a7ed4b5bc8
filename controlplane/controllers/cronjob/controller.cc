#include "controlplane/controllers/cronjob/controller.h"

#include <algorithm>

#include <fmt/format.h>

#include "controlplane/controllers/common/controller_ref_manager.h"
#include "controlplane/controllers/common/metrics.h"
#include "lib/api/meta.h"
#include "lib/base/wall_time.h"
#include "lib/k8s/field_error.h"

namespace keelson::controllers {
namespace {

bool IsActive(const batchv1::CronJob& cron, std::string_view uid) {
  const auto& active = cron.status().active();
  return std::any_of(active.begin(), active.end(), [&](const auto& one) { return one.uid() == uid; });
}

bool IsActiveByName(const batchv1::CronJob& cron, std::string_view name) {
  const auto& active = cron.status().active();
  return std::any_of(active.begin(), active.end(), [&](const auto& one) { return one.name() == name; });
}

bool DropActive(batchv1::CronJob& cron, std::string_view uid) {
  auto& active = *cron.mutable_status()->mutable_active();
  const auto it =
      std::find_if(active.begin(), active.end(), [&](const auto& one) { return one.uid() == uid; });
  if (it == active.end()) return false;
  active.erase(it);
  return true;
}

corev1::ObjectReference ReferenceTo(const batchv1::Job& job) {
  corev1::ObjectReference reference;
  reference.set_kind("Job");
  reference.set_namespace_(job.metadata().namespace_());
  reference.set_name(job.metadata().name());
  reference.set_uid(job.metadata().uid());
  reference.set_api_version("batch/v1");
  reference.set_resource_version(job.metadata().resource_version());
  return reference;
}

}  // namespace

CronJobController::CronJobController(client::RestClient api, client::InformerFactory& informers,
                                     client::EventRecorder& events, Clock& clock)
    : Controller("cronjob", clock, 5),
      api_(std::move(api)),
      events_(events),
      crons_(informers.Get<batchv1::CronJob>()),
      jobs_(informers.Get<batchv1::Job>()) {
  jobs_.AddIndex(kByOwner, [](const batchv1::Job& job) { return OwnerIndex(job.metadata()); });
  crons_.AddHandler([this](const auto& change) { OnCron(change); });
  jobs_.AddHandler([this](const auto& change) { OnJob(change); });
}

void CronJobController::OnCron(const client::Change<batchv1::CronJob>& change) {
  if (!change.new_object) written_.Clear(change.key);
  if (change.old_object && change.new_object) {
    const batchv1::CronJobSpec &before = change.old_object->spec(), &after = change.new_object->spec();
    const bool moved = before.schedule() != after.schedule() || before.time_zone() != after.time_zone();
    // A changed schedule does not start Jobs for its past times.
    if (moved && !after.suspend()) {
      if (Result<Timetable> table = TimetableOf(*change.new_object)) {
        queue().AddAfter(change.key, NextLook(*change.new_object, *table, clock().Now()));
        return;
      }
    }
  }
  queue().Add(change.key);
}

void CronJobController::EnqueueOwner(const batchv1::Job& job) {
  const metav1::OwnerReference* owner = api::ControllerOf(job.metadata());
  if (!owner || owner->kind() != "CronJob") return;
  auto cron = crons_.Get(job.metadata().namespace_(), owner->name());
  if (cron && cron->metadata().uid() == owner->uid()) queue().Add(api::KeyOf(*cron));
}

void CronJobController::OnJob(const client::Change<batchv1::Job>& change) {
  if (change.new_object) EnqueueOwner(*change.new_object);
  if (change.old_object) EnqueueOwner(*change.old_object);
}

Result<> CronJobController::RemoveJob(Sync& sync, const batchv1::Job& job) {
  const metav1::ObjectMeta& meta = job.metadata();
  Result<> deleted = sync.api.Delete<batchv1::Job>(meta.namespace_(), meta.name(),
                                                   {.propagation_policy = "Background", .uid = meta.uid()});
  if (!deleted && !deleted.error().Is(Code::kNotFound)) {
    events_.Record(sync.cron, "Warning", "FailedDelete", "Deleted job: " + deleted.error().message());
    return deleted.error().Wrap("delete Job " + meta.name());
  }
  if (DropActive(sync.cron, meta.uid())) sync.changed = true;
  if (deleted) events_.Record(sync.cron, "Normal", "SuccessfulDelete", "Deleted job " + meta.name());
  return {};
}

void CronJobController::RemoveOld(Sync& sync, const JobPointers& jobs) {
  // A failed deletion has its event, and the next sync retries it.
  for (const JobPointer& job : JobsToRemove(sync.cron, jobs)) (void)RemoveJob(sync, *job);
}

void CronJobController::FollowJob(Sync& sync, const batchv1::Job& job) {
  batchv1::CronJobStatus& status = *sync.cron.mutable_status();
  const std::string &uid = job.metadata().uid(), &name = job.metadata().name();
  const bool active = IsActive(sync.cron, uid), finished = IsFinished(job);
  const std::optional<WallTime> time = TimeOf(sync.cron, job);
  if (time && (!status.has_last_schedule_time() || *time > api::FromTime(status.last_schedule_time()))) {
    *status.mutable_last_schedule_time() = api::ToTime(*time);
    sync.changed = true;
  }
  if (!active && !finished && time) {
    *status.add_active() = ReferenceTo(job);
    sync.changed = true;
  } else if (!active && !finished) {
    events_.Record(sync.cron, "Warning", "UnexpectedJob",
                   "Saw a job that the controller did not create or forgot: " + name);
  } else if (active && finished) {
    DropActive(sync.cron, uid);
    events_.Record(sync.cron, "Normal", "SawCompletedJob",
                   fmt::format("Saw completed job: {}, condition: {}", name,
                               HasCondition(job, "Complete") ? "Complete" : "Failed"));
    sync.changed = true;
  }
  if (!HasCondition(job, "Complete") || !job.status().has_completion_time()) return;
  const metav1::Time& end = job.status().completion_time();
  if (status.has_last_successful_time() && end.seconds() <= status.last_successful_time().seconds()) return;
  *status.mutable_last_successful_time() = end;
  sync.changed = true;
}

Result<> CronJobController::FollowJobs(Sync& sync, const JobPointers& jobs) {
  std::set<std::string> known;
  for (const JobPointer& job : jobs) {
    known.insert(job->metadata().uid());
    FollowJob(sync, *job);
  }
  const auto active = sync.cron.status().active();
  for (const corev1::ObjectReference& one : active) {
    if (known.count(one.uid())) continue;
    // The local store may lag behind.
    Result<batchv1::Job> live = sync.api.Get<batchv1::Job>(one.namespace_(), one.name());
    if (live && live->metadata().uid() == one.uid()) continue;
    if (!live && !live.error().Is(Code::kNotFound)) return live.error();
    events_.Record(sync.cron, "Normal", "MissingJob", "Active job went missing: " + one.name());
    DropActive(sync.cron, one.uid());
    sync.changed = true;
  }
  return {};
}

Result<> CronJobController::ReplaceActive(Sync& sync) {
  const auto active = sync.cron.status().active();
  for (const corev1::ObjectReference& one : active) {
    Result<batchv1::Job> job = sync.api.Get<batchv1::Job>(one.namespace_(), one.name());
    if (!job) {
      events_.Record(sync.cron, "Warning", "FailedGet", "Get job: " + job.error().message());
      return job.error();
    }
    KEELSON_RETURN_IF_ERROR(RemoveJob(sync, *job));
  }
  return {};
}

Result<Requeue> CronJobController::Start(Sync& sync, const Timetable& table, WallTime time) {
  const batchv1::Job wanted = JobAt(sync.cron, time);
  const metav1::ObjectMeta& meta = wanted.metadata();
  Result<batchv1::Job> job = sync.api.Create(wanted);
  if (job) {
    static metrics::Histogram& skew = TheMetrics().cronjob_job_creation_skew_duration_seconds.HistogramWith();
    skew.Observe(std::chrono::duration<double>(clock().Now() - time).count());
    events_.Record(sync.cron, "Normal", "SuccessfulCreate", "Created job " + meta.name());
  } else if (job.error().Is(Code::kAlreadyExists)) {
    // Either a controller was killed before it wrote the status, or another client created the Job.
    job = sync.api.Get<batchv1::Job>(meta.namespace_(), meta.name());
    if (!job) return job.error();
    const metav1::OwnerReference* owner = api::ControllerOf(job->metadata());
    if (!owner || owner->uid() != sync.cron.metadata().uid() || IsActive(sync.cron, job->metadata().uid())) {
      return Requeue{NextLook(sync.cron, table, clock().Now())};
    }
  } else {
    if (!IsNamespaceTerminating(job.error())) {
      events_.Record(sync.cron, "Warning", "FailedCreate", "Error creating job: " + job.error().message());
    }
    return job.error();
  }
  batchv1::CronJobStatus& status = *sync.cron.mutable_status();
  *status.add_active() = ReferenceTo(*job);
  *status.mutable_last_schedule_time() = api::ToTime(time);
  sync.changed = true;
  return Requeue{NextLook(sync.cron, table, clock().Now())};
}

Result<Requeue> CronJobController::Schedule(Sync& sync) {
  const batchv1::CronJobSpec& spec = sync.cron.spec();
  const WallTime now = clock().Now();
  const auto warn = [&](std::string_view reason, std::string message) {
    events_.Record(sync.cron, "Warning", reason, std::move(message));
    return Requeue{};
  };
  if (spec.has_time_zone() && !TimeZone::Load(spec.time_zone())) {
    return warn("UnknownTimeZone", fmt::format("invalid timeZone: {}: unknown time zone {}",
                                               k8s::Quote(spec.time_zone()), spec.time_zone()));
  }
  if (spec.suspend()) return Requeue{};
  if (spec.schedule().find("TZ") != std::string::npos) {
    warn("UnsupportedSchedule",
         fmt::format("CRON_TZ or TZ used in schedule {} is not officially supported, see "
                     "https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details",
                     k8s::Quote(spec.schedule())));
  }
  const Result<Timetable> table = TimetableOf(sync.cron);
  if (!table) {
    return warn("UnparseableSchedule", fmt::format("unparseable schedule: {} : {}",
                                                   k8s::Quote(spec.schedule()), table.error().message()));
  }
  const Result<DueTime> due = FindDue(sync.cron, *table, now, true);
  if (!due) {
    return warn("InvalidSchedule",
                fmt::format("invalid schedule: {} : {}", spec.schedule(), due.error().message()));
  }
  const Requeue later{NextLook(sync.cron, *table, now)};
  if (!due->time) return later;
  if (due->missed > kManyMissed) {
    warn("TooManyMissedTimes",
         "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew");
  }
  if (spec.has_starting_deadline_seconds() && *due->time + Span(spec.starting_deadline_seconds()) < now) {
    warn("MissSchedule", "Missed scheduled time to start a job: " + FormatRfc1123(*due->time));
    return later;
  }
  const batchv1::CronJobStatus& status = sync.cron.status();
  if (IsActiveByName(sync.cron, JobNameAt(sync.cron, *due->time)) ||
      (status.has_last_schedule_time() && api::FromTime(status.last_schedule_time()) == *due->time)) {
    return later;
  }
  if (spec.concurrency_policy() == "Forbid" && status.active_size() > 0) {
    events_.Record(sync.cron, "Normal", "JobAlreadyActive",
                   "Not starting job because prior execution is running and concurrency policy is Forbid");
    return later;
  }
  if (spec.concurrency_policy() == "Replace") KEELSON_RETURN_IF_ERROR(ReplaceActive(sync));
  return Start(sync, *table, *due->time);
}

Result<Requeue> CronJobController::Reconcile(const std::string& key, std::stop_token stop) {
  auto cron = crons_.Get(key);
  if (!cron || !written_.IsReady(key, cron->metadata())) return Requeue{};
  Sync sync{api_.With(stop), *cron};
  JobPointers jobs;
  for (auto& job : jobs_.ByIndex(kByOwner, cron->metadata().uid())) jobs.push_back(std::move(job));
  KEELSON_RETURN_IF_ERROR(FollowJobs(sync, jobs));
  // Write the status with the scheduled time before deleting the Job.
  KEELSON_RETURN_IF_ERROR(WriteStatus(sync, key));
  RemoveOld(sync, jobs);
  Result<Requeue> again = Requeue{};
  if (!cron->metadata().has_deletion_timestamp()) again = Schedule(sync);
  KEELSON_RETURN_IF_ERROR(WriteStatus(sync, key));
  return again;
}

Result<> CronJobController::WriteStatus(Sync& sync, const std::string& key) {
  if (!sync.changed) return {};
  KEELSON_ASSIGN_OR_RETURN(sync.cron, sync.api.UpdateStatus(sync.cron));
  written_.WroteAt(key, sync.cron.metadata());
  sync.changed = false;
  return {};
}

}  // namespace keelson::controllers
