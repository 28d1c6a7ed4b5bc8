// Counts the pods of a Job, and decides whether it ends.
#include <algorithm>

#include <fmt/format.h>

#include "controlplane/controllers/job/plan.h"
#include "lib/api/meta.h"
#include "lib/base/wall_time.h"
#include "lib/k8s/pods/pod_util.h"

namespace keelson::controllers {
namespace {

const batchv1::JobCondition* FindTrue(const batchv1::Job& job, std::string_view type) {
  for (const batchv1::JobCondition& condition : job.status().conditions()) {
    if (condition.type() == type && condition.status() == "True") return &condition;
  }
  return nullptr;
}

// True for an index in range; always true for a Job without indexes.
bool HasValidIndex(const batchv1::Job& job, const corev1::Pod& pod) {
  if (!IsIndexed(job)) return true;
  const std::optional<int32_t> index = CompletionIndex(pod);
  return index && *index < job.spec().completions();
}

using Uids = google::protobuf::RepeatedPtrField<std::string>;

template <typename Filter>
PodPointers NewlyEnded(const JobLook& look, const Uids& noted, const Filter& filter) {
  PodPointers out;
  for (const PodPointer& pod : look.pods) {
    if (look.counted(*pod) || std::find(noted.begin(), noted.end(), pod->metadata().uid()) != noted.end()) {
      continue;
    }
    if (HasValidIndex(look.job, *pod) && filter(*pod)) out.push_back(pod);
  }
  return out;
}

std::set<int32_t> IndexesOf(const PodPointers& pods) {
  std::set<int32_t> out;
  for (const PodPointer& pod : pods) {
    if (std::optional<int32_t> index = CompletionIndex(*pod)) out.insert(*index);
  }
  return out;
}

void LookAtIndexes(JobLook& look) {
  const batchv1::Job& job = look.job;
  const int32_t completions = job.spec().completions();
  const bool per_index = job.spec().has_backoff_limit_per_index();
  look.counted_indexes = IndexesBelow(job.status().completed_indexes(), completions);
  IndexRanges failed = IndexesBelow(job.status().failed_indexes(), completions);
  std::set<int32_t> succeeded_now, failed_now;
  for (const PodPointer& pod : look.pods) {
    const std::optional<int32_t> index = CompletionIndex(*pod);
    if (!index || *index >= completions || !IsTracked(*pod)) continue;
    if (pod->status().phase() == "Succeeded") {
      succeeded_now.insert(*index);
    } else if (per_index && !Contains(failed, *index) && FailsIndex(job, *pod)) {
      failed_now.insert(*index);
    }
  }
  look.succeeded_indexes = With(look.counted_indexes, succeeded_now);
  look.succeeded = static_cast<int32_t>(k8s::CountIndexes(look.succeeded_indexes));
  if (per_index) look.failed_indexes = With(failed, failed_now);
}

void FindAwaiting(JobLook& look) {
  const std::set<int32_t> active = IndexesOf(look.active);
  for (const PodPointer& pod :
       NewlyEnded(look, {}, [&](const corev1::Pod& p) { return HasFailed(p, look.job); })) {
    const int32_t index = *CompletionIndex(*pod);
    if (active.count(index) || Contains(look.succeeded_indexes, index) ||
        Contains(*look.failed_indexes, index)) {
      continue;
    }
    PodPointer& last = look.awaiting[index];
    const auto rank = [](const corev1::Pod& p) {
      const IndexFailures failures = FailuresBefore(p);
      return std::pair(failures.counted + failures.ignored, FinishedAt(p));
    };
    if (!last || rank(*last) <= rank(*pod)) last = pod;
  }
}

std::optional<batchv1::JobCondition> FailingPolicy(const JobLook& look) {
  if (!look.job.spec().has_pod_failure_policy()) return std::nullopt;
  for (const PodPointer& pod : look.pods) {
    if (!HasFailed(*pod, look.job)) continue;
    const FailureVerdict verdict = JudgeFailure(look.job, *pod);
    if (verdict.action == "FailJob") {
      return MakeJobCondition("FailureTarget", "PodFailurePolicy", verdict.message, look.now);
    }
  }
  return std::nullopt;
}

// In-place container restarts count, too.
bool RestartedTooOften(const JobLook& look) {
  const batchv1::JobSpec& spec = look.job.spec();
  if (spec.template_().spec().restart_policy() != "OnFailure") return false;
  int64_t restarts = 0;
  for (const PodPointer& pod : look.pods) {
    const corev1::PodStatus& status = pod->status();
    if (status.phase() != "Running" && status.phase() != "Pending") continue;
    for (const auto& container : status.init_container_statuses()) restarts += container.restart_count();
    for (const auto& container : status.container_statuses()) restarts += container.restart_count();
  }
  return spec.backoff_limit() == 0 ? restarts > 0 : restarts >= spec.backoff_limit();
}

std::optional<batchv1::JobCondition> FailingIndexes(const JobLook& look) {
  if (!look.failed_indexes) return std::nullopt;
  const batchv1::JobSpec& spec = look.job.spec();
  const int64_t failed = k8s::CountIndexes(*look.failed_indexes);
  if (spec.has_max_failed_indexes() && failed > spec.max_failed_indexes()) {
    return MakeJobCondition("FailureTarget", "MaxFailedIndexesExceeded",
                            "Job has exceeded the specified maximal number of failed indexes", look.now);
  }
  if (failed > 0 && failed + look.succeeded >= spec.completions()) {
    return MakeJobCondition("FailureTarget", "FailedIndexes", "Job has failed indexes", look.now);
  }
  return std::nullopt;
}

std::optional<batchv1::JobCondition> MeetingSuccessPolicy(const JobLook& look) {
  const batchv1::JobSpec& spec = look.job.spec();
  if (!spec.has_success_policy() || look.succeeded_indexes.empty()) return std::nullopt;
  const auto& rules = spec.success_policy().rules();
  for (int i = 0; i < rules.size(); ++i) {
    int64_t have = look.succeeded, wanted = rules[i].succeeded_count();
    if (rules[i].has_succeeded_indexes()) {
      const IndexRanges named = IndexesBelow(rules[i].succeeded_indexes(), spec.completions());
      have = CountCommon(named, look.succeeded_indexes);
      if (!rules[i].has_succeeded_count()) wanted = k8s::CountIndexes(named);
    }
    if (have >= wanted) {
      return MakeJobCondition("SuccessCriteriaMet", "SuccessPolicy",
                              fmt::format("Matched rules at index {}", i), look.now);
    }
  }
  return std::nullopt;
}

std::optional<batchv1::JobCondition> HowItEnds(const JobLook& look) {
  const batchv1::Job& job = look.job;
  // A recorded FailureTarget or SuccessCriteriaMet is final, whatever the pods say now.
  if (const batchv1::JobCondition* met = FindTrue(job, "SuccessCriteriaMet")) return *met;
  if (const batchv1::JobCondition* target = FindTrue(job, "FailureTarget")) {
    return MakeJobCondition("Failed", target->reason(), target->message(), look.now);
  }
  if (auto failing = FailingPolicy(look)) return failing;
  if (look.failed > job.spec().backoff_limit() || RestartedTooOften(look)) {
    return MakeJobCondition("FailureTarget", "BackoffLimitExceeded",
                            "Job has reached the specified backoff limit", look.now);
  }
  const std::optional<std::chrono::nanoseconds> deadline = DeadlineAfter(look);
  if (deadline && deadline->count() <= 0) {
    return MakeJobCondition("FailureTarget", "DeadlineExceeded",
                            "Job was active longer than specified deadline", look.now);
  }
  if (auto failing = FailingIndexes(look)) return failing;
  return MeetingSuccessPolicy(look);
}

}  // namespace

bool JobLook::counted(const corev1::Pod& pod) const {
  return !IsTracked(pod) || released.count(pod.metadata().uid()) > 0;
}

batchv1::JobCondition MakeJobCondition(std::string_view type, std::string_view reason,
                                       std::string_view message, WallTime now) {
  batchv1::JobCondition condition;
  condition.set_type(std::string(type));
  condition.set_status("True");
  *condition.mutable_last_probe_time() = api::ToTime(now);
  *condition.mutable_last_transition_time() = api::ToTime(now);
  condition.set_reason(std::string(reason));
  condition.set_message(std::string(message));
  return condition;
}

std::optional<std::chrono::nanoseconds> DeadlineAfter(const JobLook& look) {
  const batchv1::Job& job = look.job;
  if (!job.spec().has_active_deadline_seconds() || !job.status().has_start_time() || IsSuspended(job)) {
    return std::nullopt;
  }
  return api::FromTime(job.status().start_time()) + Span(job.spec().active_deadline_seconds()) - look.now;
}

JobLook LookAt(const batchv1::Job& job, PodPointers pods, std::set<std::string> released, Backoff backoff,
               WallTime now) {
  JobLook look;
  look.job = job;
  look.pods = std::move(pods);
  look.released = std::move(released);
  look.now = now;
  for (const PodPointer& pod : look.pods) {
    if (k8s::IsTerminating(*pod) && !k8s::IsTerminal(*pod)) ++look.terminating;
    if (!k8s::IsActive(*pod)) continue;
    look.active.push_back(pod);
    if (k8s::IsReady(*pod)) ++look.ready;
  }
  look.active_count = static_cast<int32_t>(look.active.size());

  batchv1::JobStatus& status = *look.job.mutable_status();
  const batchv1::UncountedTerminatedPods& noted = *status.mutable_uncounted_terminated_pods();
  const PodPointers succeeded = NewlyEnded(
      look, noted.succeeded(), [](const corev1::Pod& pod) { return pod.status().phase() == "Succeeded"; });
  const PodPointers failed =
      NewlyEnded(look, noted.failed(), [&](const corev1::Pod& pod) { return HasFailed(pod, job); });
  const auto counted_failures = std::count_if(
      failed.begin(), failed.end(), [&](const PodPointer& pod) { return JudgeFailure(job, *pod).counts; });
  look.succeeded = status.succeeded() + noted.succeeded_size() + static_cast<int32_t>(succeeded.size());
  look.failed = status.failed() + noted.failed_size() + static_cast<int32_t>(counted_failures);
  look.backoff = NextBackoff(backoff, succeeded, failed);

  if (!status.has_start_time() && !IsSuspended(job)) *status.mutable_start_time() = api::ToTime(now);
  if (IsIndexed(job)) LookAtIndexes(look);
  look.finish = HowItEnds(look);
  if (look.failed_indexes) FindAwaiting(look);
  return look;
}

}  // namespace keelson::controllers
