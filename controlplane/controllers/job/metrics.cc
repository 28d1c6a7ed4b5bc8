#include "controlplane/controllers/job/metrics.h"

#include <algorithm>

#include "lib/base/metrics.h"

namespace keelson::controllers {
namespace {

std::string ModeOf(const batchv1::Job& job) {
  return job.spec().completion_mode() == "Indexed" ? "Indexed" : "NonIndexed";
}

}  // namespace

void CountSync(const batchv1::Job& job, SyncAction action, bool success, std::chrono::nanoseconds took) {
  static metrics::Family& total = metrics::Counter(
      "job_controller_job_syncs_total", "The number of job syncs", {"completion_mode", "result", "action"});
  static metrics::Family& duration =
      metrics::Histograms("job_controller_job_sync_duration_seconds", "The time it took to sync a job",
                          metrics::ExponentialBuckets(0.004, 2, 15), {"completion_mode", "result", "action"});
  constexpr const char* kActions[] = {"reconciling", "tracking", "pods_created", "pods_deleted"};
  const std::vector<std::string> labels = {ModeOf(job), success ? "success" : "error",
                                           kActions[static_cast<int>(action)]};
  total.With(labels).Increment();
  duration.HistogramWith(labels).Observe(std::chrono::duration<double>(took).count());
}

void CountPodCreation(const batchv1::Job& job, bool terminating, bool success) {
  static metrics::Family& total =
      metrics::Counter("job_controller_job_pods_creation_total",
                       "The number of Pods created by the Job controller labelled with a reason for the Pod "
                       "creation, and with whether it succeeded.",
                       {"reason", "status"});
  std::string reason = "new";
  if (job.spec().pod_replacement_policy() == "Failed") {
    if (job.status().failed() > 0) reason = "recreate_failed";
  } else if (job.status().failed() > 0 || terminating) {
    reason = "recreate_terminating_or_failed";
  }
  total.With({reason, success ? "succeeded" : "failed"}).Increment();
}

void CountEndedPods(const batchv1::Job& before, const batchv1::Job& after) {
  static metrics::Family& total =
      metrics::Counter("job_controller_job_pods_finished_total",
                       "The number of finished Pods that are fully tracked", {"completion_mode", "result"});
  const int succeeded = after.status().succeeded() - before.status().succeeded(),
            failed = after.status().failed() - before.status().failed();
  if (succeeded > 0) total.With({ModeOf(after), "succeeded"}).Add(succeeded);
  if (failed > 0) total.With({ModeOf(after), "failed"}).Add(failed);
}

void CountFinished(const batchv1::Job& job, const batchv1::JobCondition& end) {
  static metrics::Family& total =
      metrics::Counter("job_controller_jobs_finished_total", "The number of finished jobs",
                       {"completion_mode", "result", "reason"});
  total.With({ModeOf(job), end.type() == "Failed" ? "failed" : "succeeded", end.reason()}).Increment();
}

}  // namespace keelson::controllers
