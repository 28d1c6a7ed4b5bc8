// The status of a Job, and when pods are counted.
#include <algorithm>

#include "controlplane/controllers/job/plan.h"
#include "lib/api/meta.h"
#include "lib/k8s/pods/pod_util.h"

namespace keelson::controllers {
namespace {

constexpr size_t kMaxUncounted = 500;  // keeps their UIDs below about 20 KB

using Uids = google::protobuf::RepeatedPtrField<std::string>;

bool Has(const Uids& uids, const std::string& uid) {
  return std::find(uids.begin(), uids.end(), uid) != uids.end();
}

// Returns whether anything changed. Does not add a condition with status False.
bool SetStatusOf(batchv1::JobStatus& status, batchv1::JobCondition condition) {
  for (batchv1::JobCondition& have : *status.mutable_conditions()) {
    if (have.type() != condition.type()) continue;
    if (have.status() == condition.status() && have.reason() == condition.reason() &&
        have.message() == condition.message()) {
      return false;
    }
    if (have.status() == condition.status()) {
      *condition.mutable_last_transition_time() = have.last_transition_time();
    }
    have = std::move(condition);
    return true;
  }
  if (condition.status() == "False") return false;
  *status.add_conditions() = std::move(condition);
  return true;
}

bool SetSuspended(JobLook& look, bool suspended) {
  batchv1::JobCondition condition =
      suspended ? MakeJobCondition("Suspended", "JobSuspended", "Job suspended", look.now)
                : MakeJobCondition("Suspended", "JobResumed", "Job resumed", look.now);
  if (!suspended) condition.set_status("False");
  return SetStatusOf(*look.job.mutable_status(), std::move(condition));
}

bool MayRelease(const JobLook& look, const corev1::Pod& pod, bool failed) {
  if (look.job.metadata().has_deletion_timestamp() || look.finish || pod.status().phase() == "Succeeded") {
    return true;
  }
  if (!failed) return false;
  const std::optional<int32_t> index = CompletionIndex(pod);
  if (!index) return true;
  const auto last = look.awaiting.find(*index);
  return last == look.awaiting.end() || last->second->metadata().uid() != pod.metadata().uid();
}

void CountPod(JobLook& look, const corev1::Pod& pod, bool failed, std::set<int32_t>& new_indexes,
              Tally& tally) {
  batchv1::UncountedTerminatedPods& noted = *look.job.mutable_status()->mutable_uncounted_terminated_pods();
  const std::string& uid = pod.metadata().uid();
  if (Has(noted.failed(), uid)) return;
  const std::optional<int32_t> index = CompletionIndex(pod);
  if (IsIndexed(look.job) && (!index || *index >= look.job.spec().completions())) return;
  if (pod.status().phase() == "Succeeded") {
    if (IsIndexed(look.job)) {
      // For an indexed Job the index itself shows that the pod is counted.
      if (Contains(look.counted_indexes, *index) || !new_indexes.insert(*index).second) return;
    } else {
      if (Has(noted.succeeded(), uid)) return;
      noted.add_succeeded(uid);
    }
    tally.changed = true;
    return;
  }
  // A failing Job also counts its running pods as failed.
  const bool failing = look.finish && look.finish->type() != "SuccessCriteriaMet";
  if (!failed && !failing) return;
  const FailureVerdict verdict = JudgeFailure(look.job, pod);
  if (!verdict.action.empty()) ++tally.policy_actions[verdict.action];
  if (!verdict.counts) return;
  noted.add_failed(uid);
  tally.changed = true;
}

void WriteIndexes(JobLook& look, const std::set<int32_t>& new_indexes, Tally& tally) {
  batchv1::JobStatus& status = *look.job.mutable_status();
  look.counted_indexes = With(look.counted_indexes, new_indexes);
  const std::string completed = FormatIndexes(look.counted_indexes);
  if (completed != status.completed_indexes()) tally.changed = true;
  status.clear_completed_indexes();
  if (!completed.empty()) status.set_completed_indexes(completed);
  status.clear_succeeded();
  if (int64_t count = k8s::CountIndexes(look.counted_indexes)) {
    status.set_succeeded(static_cast<int32_t>(count));
  }
  const std::string failed = look.failed_indexes ? FormatIndexes(*look.failed_indexes) : "";
  if (look.failed_indexes.has_value() == status.has_failed_indexes() && failed == status.failed_indexes()) {
    return;
  }
  tally.changed = true;
  status.clear_failed_indexes();
  if (look.failed_indexes) status.set_failed_indexes(failed);
}

// Write the decision to the status before any finalizer is removed.
void Announce(JobLook& look, Tally& tally) {
  if (!look.finish) return;
  const std::string type = look.finish->type();
  if (type != "FailureTarget" && type != "SuccessCriteriaMet") return;
  batchv1::JobStatus& status = *look.job.mutable_status();
  if (!HasCondition(look.job, type)) {
    *status.add_conditions() = *look.finish;
    tally.changed = true;
  }
  // A Job that ends while suspended has no start time.
  const bool never_ran = look.job.spec().has_completions() && look.job.spec().completions() == 0;
  if (!status.has_start_time() && !never_ran) *status.mutable_start_time() = api::ToTime(look.now);
  look.finish = MakeJobCondition(type == "FailureTarget" ? "Failed" : "Complete", look.finish->reason(),
                                 look.finish->message(), look.now);
}

void KeepTracked(Uids& uids, const std::set<std::string>& tracked, int32_t& counted) {
  Uids left;
  for (std::string& uid : uids) {
    if (tracked.count(uid)) {
      *left.Add() = std::move(uid);
    } else {
      ++counted;
    }
  }
  uids.Swap(&left);
}

}  // namespace

std::string Settle(JobLook& look, bool managed) {
  if (look.finish) return "";
  const batchv1::JobSpec& spec = look.job.spec();
  const int32_t enough = spec.has_completions() ? spec.completions() : 1;
  if (look.succeeded >= enough && look.active_count == 0) {
    look.finish = MakeJobCondition("SuccessCriteriaMet", "CompletionsReached",
                                   "Reached expected number of succeeded pods", look.now);
    return "";
  }
  if (!managed || !SetSuspended(look, spec.suspend())) return "";
  // Suspended time does not count towards the deadline.
  batchv1::JobStatus& status = *look.job.mutable_status();
  if (spec.suspend()) {
    status.clear_start_time();
    return "Suspended";
  }
  *status.mutable_start_time() = api::ToTime(look.now);
  return "Resumed";
}

Tally CountEnded(JobLook& look) {
  batchv1::JobStatus& status = *look.job.mutable_status();
  const batchv1::UncountedTerminatedPods& noted = *status.mutable_uncounted_terminated_pods();
  Tally tally;
  for (const PodPointer& pod : look.pods) {
    if (!look.counted(*pod)) tally.tracked.insert(pod->metadata().uid());
  }
  tally.changed = SettleCounted(status, tally.tracked);
  std::set<int32_t> new_indexes;
  for (const PodPointer& pod : look.pods) {
    if (!tally.tracked.count(pod->metadata().uid())) continue;
    const bool failed = HasFailed(*pod, look.job);
    if (!MayRelease(look, *pod, failed)) continue;
    tally.release.push_back(pod);
    CountPod(look, *pod, failed, new_indexes, tally);
    const size_t total =
        new_indexes.size() + static_cast<size_t>(noted.succeeded_size() + noted.failed_size());
    if (total < kMaxUncounted) continue;
    tally.partial = true;
    break;
  }
  if (IsIndexed(look.job)) WriteIndexes(look, new_indexes, tally);
  Announce(look, tally);
  const auto put = [&](int32_t value, int32_t before) { tally.changed = tally.changed || value != before; };
  put(look.active_count, status.active());
  put(look.ready, status.has_ready() ? status.ready() : -1);
  put(look.terminating, status.has_terminating() ? status.terminating() : -1);
  status.clear_active();
  if (look.active_count != 0) status.set_active(look.active_count);
  status.set_ready(look.ready);
  status.set_terminating(look.terminating);
  return tally;
}

bool SettleCounted(batchv1::JobStatus& status, const std::set<std::string>& tracked) {
  batchv1::UncountedTerminatedPods& noted = *status.mutable_uncounted_terminated_pods();
  int32_t succeeded = 0, failed = 0;
  KeepTracked(*noted.mutable_succeeded(), tracked, succeeded);
  KeepTracked(*noted.mutable_failed(), tracked, failed);
  if (succeeded > 0) status.set_succeeded(status.succeeded() + succeeded);
  if (failed > 0) status.set_failed(status.failed() + failed);
  return succeeded > 0 || failed > 0;
}

bool Finish(JobLook& look, const Tally& tally) {
  batchv1::JobStatus& status = *look.job.mutable_status();
  const batchv1::UncountedTerminatedPods& noted = status.uncounted_terminated_pods();
  if (!look.finish || tally.partial || look.terminating > 0) return false;
  if (noted.succeeded_size() > 0 || noted.failed_size() > 0) return false;
  SetStatusOf(status, *look.finish);
  if (look.finish->type() == "Complete") {
    *status.mutable_completion_time() = look.finish->last_transition_time();
  }
  return true;
}

}  // namespace keelson::controllers
