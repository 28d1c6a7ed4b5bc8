#include "controlplane/controllers/job/metrics.h"

#include <algorithm>

#include "controlplane/controllers/common/metrics.h"
#include "controlplane/controllers/job/indexes.h"
#include "lib/k8s/pods/pod_util.h"

namespace keelson::controllers {
namespace {

std::string ModeOf(const batchv1::Job& job) {
  return job.spec().completion_mode() == "Indexed" ? "Indexed" : "NonIndexed";
}

}  // namespace

void CountSync(const batchv1::Job& job, SyncAction action, bool success, std::chrono::nanoseconds took) {
  static metrics::Family& total = TheMetrics().job_job_syncs_total;
  static metrics::Family& duration = TheMetrics().job_job_sync_duration_seconds;
  constexpr const char* kActions[] = {"reconciling", "tracking", "pods_created", "pods_deleted"};
  const std::vector<std::string> labels = {ModeOf(job), success ? "success" : "error",
                                           kActions[static_cast<int>(action)]};
  total.With(labels).Increment();
  duration.HistogramWith(labels).Observe(std::chrono::duration<double>(took).count());
}

void CountPodCreation(const batchv1::Job& job, bool terminating, bool success) {
  static metrics::Family& total = TheMetrics().job_job_pods_creation_total;
  std::string reason = "new";
  if (job.spec().pod_replacement_policy() == "Failed") {
    if (job.status().failed() > 0) reason = "recreate_failed";
  } else if (job.status().failed() > 0 || terminating) {
    reason = "recreate_terminating_or_failed";
  }
  total.With({reason, success ? "succeeded" : "failed"}).Increment();
}

void CountEndedPods(const batchv1::Job& before, const batchv1::Job& after) {
  static metrics::Family& total = TheMetrics().job_job_pods_finished_total;
  const int succeeded = after.status().succeeded() - before.status().succeeded(),
            failed = after.status().failed() - before.status().failed();
  if (succeeded > 0) total.With({ModeOf(after), "succeeded"}).Add(succeeded);
  if (failed > 0) total.With({ModeOf(after), "failed"}).Add(failed);
  if (!IsIndexed(after)) return;
  static metrics::Family& indexes = TheMetrics().job_job_finished_indexes_total;
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
  static metrics::Family& total = TheMetrics().job_pod_failures_handled_by_failure_policy_total;
  for (const auto& [action, count] : actions) total.With({action}).Add(count);
}

void CountTrackedEnd(const corev1::Pod* before, const corev1::Pod* after) {
  static metrics::Family& total = TheMetrics().job_terminated_pods_tracking_finalizer_total;
  auto counts = [](const corev1::Pod* pod) { return pod && k8s::IsTerminal(*pod) && IsTracked(*pod); };
  const bool was = counts(before), is = counts(after);
  if (was != is) total.With({is ? "add" : "delete"}).Increment();
}

void CountManagedElsewhere(const batchv1::Job& job) {
  static metrics::Family& total = TheMetrics().job_jobs_by_external_controller_total;
  total.With({job.spec().managed_by()}).Increment();
}

void CountFinished(const batchv1::Job& job, const batchv1::JobCondition& end) {
  static metrics::Family& total = TheMetrics().job_jobs_finished_total;
  total.With({ModeOf(job), end.type() == "Failed" ? "failed" : "succeeded", end.reason()}).Increment();
}

}  // namespace keelson::controllers
