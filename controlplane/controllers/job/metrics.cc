#include "controlplane/controllers/job/metrics.h"

#include <algorithm>

#include "controlplane/controllers/job/indexes.h"
#include "lib/base/metrics.h"
#include "lib/k8s/pod_util.h"

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
  if (!IsIndexed(after)) return;
  static metrics::Family& indexes = metrics::Counter(
      "job_controller_job_finished_indexes_total",
      "The number of finished indexes. Possible values for the status label are: \"succeeded\", "
      "\"failed\". Possible values for the backoffLimit label are: \"perIndex\" and \"global\"",
      {"status", "backoffLimit"});
  const char* limit = after.spec().has_backoff_limit_per_index() ? "perIndex" : "global";
  const int32_t completions = after.spec().completions();
  auto more = [&](const std::string& now, const std::string& then) {
    return k8s::CountIndexes(IndexesBelow(now, completions)) -
           k8s::CountIndexes(IndexesBelow(then, completions));
  };
  const int64_t done = more(after.status().completed_indexes(), before.status().completed_indexes()),
                lost = more(after.status().failed_indexes(), before.status().failed_indexes());
  if (done > 0) indexes.With({"succeeded", limit}).Add(static_cast<double>(done));
  if (lost > 0) indexes.With({"failed", limit}).Add(static_cast<double>(lost));
}

void CountPolicyActions(const std::map<std::string, int>& actions) {
  static metrics::Family& total =
      metrics::Counter("job_controller_pod_failures_handled_by_failure_policy_total",
                       "The number of failed Pods handled by failure policy with respect to the failure "
                       "policy action applied based on the matched rule.",
                       {"action"});
  for (const auto& [action, count] : actions) total.With({action}).Add(count);
}

void CountTrackedEnd(const corev1::Pod* before, const corev1::Pod* after) {
  static metrics::Family& total =
      metrics::Counter("job_controller_terminated_pods_tracking_finalizer_total",
                       "The number of terminated pods (phase=Failed|Succeeded) that have the finalizer "
                       "batch.kubernetes.io/job-tracking. The event label can be \"add\" or \"delete\".",
                       {"event"});
  auto counts = [](const corev1::Pod* pod) { return pod && k8s::IsTerminal(*pod) && IsTracked(*pod); };
  const bool was = counts(before), is = counts(after);
  if (was != is) total.With({is ? "add" : "delete"}).Increment();
}

void CountManagedElsewhere(const batchv1::Job& job) {
  static metrics::Family& total =
      metrics::Counter("job_controller_jobs_by_external_controller_total",
                       "The number of Jobs managed by an external controller", {"controller_name"});
  total.With({job.spec().managed_by()}).Increment();
}

void CountFinished(const batchv1::Job& job, const batchv1::JobCondition& end) {
  static metrics::Family& total =
      metrics::Counter("job_controller_jobs_finished_total", "The number of finished jobs",
                       {"completion_mode", "result", "reason"});
  total.With({ModeOf(job), end.type() == "Failed" ? "failed" : "succeeded", end.reason()}).Increment();
}

}  // namespace keelson::controllers
