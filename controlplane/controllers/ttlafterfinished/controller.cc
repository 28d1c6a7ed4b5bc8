#include "controlplane/controllers/ttlafterfinished/controller.h"

#include <algorithm>

#include <fmt/format.h>

#include "controlplane/controllers/common/metrics.h"
#include "lib/api/meta.h"
#include "lib/base/log.h"

namespace keelson::controllers {

using api::batch::v1::Job;
using api::batch::v1::JobCondition;

namespace {

void Observe(std::chrono::nanoseconds late) {
  static metrics::Histogram& histogram =
      TheMetrics().ttl_after_finished_job_deletion_duration_seconds.HistogramWith();
  histogram.Observe(std::chrono::duration<double>(late).count());
}

}  // namespace

Result<std::optional<WallTime>> ExpiryOf(const Job& job) {
  if (job.metadata().has_deletion_timestamp() || !job.spec().has_ttl_seconds_after_finished()) {
    return std::nullopt;
  }
  const auto& conditions = job.status().conditions();
  const auto ended = std::find_if(conditions.begin(), conditions.end(), [](const JobCondition& condition) {
    return condition.status() == "True" && (condition.type() == "Complete" || condition.type() == "Failed");
  });
  if (ended == conditions.end()) return std::nullopt;
  if (!ended->has_last_transition_time()) {
    return Error(Code::kInvalid, fmt::format("unable to find the time when the Job {}/{} finished",
                                             job.metadata().namespace_(), job.metadata().name()));
  }
  return api::FromTime(ended->last_transition_time()) +
         std::chrono::seconds(job.spec().ttl_seconds_after_finished());
}

TtlAfterFinishedController::TtlAfterFinishedController(client::RestClient api,
                                                       client::InformerFactory& informers,
                                                       client::EventRecorder&, Clock& clock)
    : Controller("ttl_jobs_to_delete", clock), api_(std::move(api)), jobs_(informers.Get<Job>()) {
  jobs_.AddHandler([this](const client::Change<Job>& change) {
    if (!change.new_object) return;
    Result<std::optional<WallTime>> expiry = ExpiryOf(*change.new_object);
    if (!expiry || *expiry) queue().Add(change.key);
  });
}

Result<Requeue> TtlAfterFinishedController::Reconcile(const std::string& key, std::stop_token stop) {
  auto job = jobs_.Get(key);
  if (!job) return Requeue{};
  const WallTime now = clock().Now();
  KEELSON_ASSIGN_OR_RETURN(std::optional<WallTime> expiry, ExpiryOf(*job));
  if (!expiry) return Requeue{};
  if (*expiry > now) return Requeue{*expiry - now};
  // The TTL may have just changed: read the Job from the API.
  const client::RestClient api = api_.With(stop);
  Result<Job> live = api.Get<Job>(job->metadata().namespace_(), job->metadata().name());
  if (!live && live.error().Is(Code::kNotFound)) return Requeue{};
  if (!live) return live.error();
  KEELSON_ASSIGN_OR_RETURN(expiry, ExpiryOf(*live));
  if (!expiry) return Requeue{};
  if (*expiry > now) return Requeue{*expiry - now};
  const metav1::ObjectMeta& meta = live->metadata();
  Result<> deleted = api.Delete<Job>(
      meta.namespace_(), meta.name(),
      {.propagation_policy = "Foreground", .uid = meta.uid(), .resource_version = meta.resource_version()});
  if (!deleted && deleted.error().Is(Code::kNotFound)) return Requeue{};
  if (!deleted) return deleted.error();
  Observe(now - *expiry);
  return Requeue{};
}

}  // namespace keelson::controllers
