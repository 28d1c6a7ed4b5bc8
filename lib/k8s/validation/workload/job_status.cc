// Status of Jobs. Other controllers may manage Jobs (spec.managedBy), so transitions are checked; most
// rules apply only when their fields have changed.
#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "lib/api/meta.h"
#include "lib/k8s/text/index_ranges.h"
#include "lib/k8s/validation/workload/internal.h"
#include "lib/k8s/validation/workload/job_internal.h"

namespace keelson::k8s {

namespace {

bool IsTrue(const batchv1::Job& job, std::string_view type) {
  const auto& conditions = job.status().conditions();
  return std::any_of(conditions.begin(), conditions.end(),
                     [&](const auto& one) { return one.type() == type && one.status() == "True"; });
}

bool IsFinished(const batchv1::Job& job) { return IsTrue(job, "Complete") || IsTrue(job, "Failed"); }

bool SameTime(bool has, const metav1::Time& time, bool had, const metav1::Time& old) {
  return has == had && time.seconds() == old.seconds();
}

// What has changed, and where errors go.
struct Transition {
  const batchv1::Job& job;
  const batchv1::Job& old;
  const Path& path;
  FieldErrors& errors;
  bool finished_changed, complete_changed, failed_changed, target_changed, met_changed, start_changed,
      end_changed, completed_indexes_changed, failed_indexes_changed;

  const batchv1::JobStatus& now() const { return job.status(); }
  const batchv1::JobStatus& before() const { return old.status(); }
  void Condition(std::string_view detail) {
    errors.push_back(InvalidRaw(path.Child("conditions"), "", detail));
  }
  void Time(std::string_view field, const metav1::Time& time, std::string_view detail) {
    errors.push_back(InvalidRaw(path.Child(field), Quote(api::FormatTime(time)), detail));
  }
};

void CheckUncounted(const batchv1::JobStatus& status, const Path& path, FieldErrors& errors) {
  std::set<std::string_view> seen;
  const auto check = [&](const Strings& uids, std::string_view field) {
    const Path list = path.Child(field);
    for (int i = 0; i < uids.size(); ++i) {
      if (uids[i].empty()) {
        errors.push_back(Invalid(list.Index(i), "", "must not be empty"));
      } else if (!seen.insert(uids[i]).second) {
        errors.push_back(Duplicate(list.Index(i), uids[i]));
      }
    }
  };
  check(status.uncounted_terminated_pods().succeeded(), "succeeded");
  check(status.uncounted_terminated_pods().failed(), "failed");
}

void CheckCompletionTime(Transition& t) {
  const batchv1::JobStatus& status = t.now();
  const bool complete = IsTrue(t.job, "Complete");
  if (t.complete_changed || t.end_changed) {
    if (status.has_completion_time() && !complete) {
      t.Time("completionTime", status.completion_time(),
             "cannot set completionTime when there is no Complete=True condition");
    }
    if (!status.has_completion_time() && complete) {
      t.errors.push_back(
          Required(t.path.Child("completionTime"), "completionTime is required for Complete jobs"));
    }
  }
  if ((t.start_changed || t.end_changed) && status.has_start_time() && status.has_completion_time() &&
      status.completion_time().seconds() < status.start_time().seconds()) {
    t.Time("completionTime", status.completion_time(), "completionTime cannot be set before startTime");
  }
}

// A Job gets a condition before it ends, and ends once its pods have gone.
void CheckAnnounced(Transition& t) {
  if ((t.failed_changed || t.target_changed) && IsTrue(t.job, "Failed") && !IsTrue(t.job, "FailureTarget")) {
    t.Condition("cannot set Failed=True condition without the FailureTarget=true condition");
  }
  if ((t.complete_changed || t.met_changed) && IsTrue(t.job, "Complete") &&
      !IsTrue(t.job, "SuccessCriteriaMet")) {
    t.Condition("cannot set Complete=True condition without the SuccessCriteriaMet=true condition");
  }
}

void CheckPods(Transition& t) {
  const batchv1::JobStatus &now = t.now(), &before = t.before();
  const bool active_changed = now.active() != before.active();
  if (IsFinished(t.job) && now.terminating() > 0 &&
      (t.finished_changed || now.terminating() != before.terminating())) {
    t.errors.push_back(Invalid(t.path.Child("terminating"), int64_t{now.terminating()},
                               "terminating>0 is invalid for finished job"));
  }
  if ((active_changed || now.ready() != before.ready()) && now.has_ready() && now.ready() > now.active()) {
    t.errors.push_back(
        Invalid(t.path.Child("ready"), int64_t{now.ready()}, "cannot set more ready pods than active"));
  }
}

void CheckFinished(Transition& t) {
  if (!IsFinished(t.job)) return;
  const batchv1::JobStatus& status = t.now();
  const Path& path = t.path;
  if (status.active() > 0 && (t.finished_changed || status.active() != t.before().active())) {
    t.errors.push_back(
        Invalid(path.Child("active"), int64_t{status.active()}, "active>0 is invalid for finished job"));
  }
  const bool never_started =
      t.job.spec().suspend() && t.job.spec().has_completions() && t.job.spec().completions() == 0;
  if (!status.has_start_time() && (t.finished_changed || t.start_changed) && !never_started) {
    t.errors.push_back(Required(path.Child("startTime"), "startTime is required for finished job"));
  }
  const auto& uncounted = status.uncounted_terminated_pods();
  const bool any = !uncounted.failed().empty() || !uncounted.succeeded().empty();
  if (any && (t.finished_changed || !SameMessage(uncounted, t.before().uncounted_terminated_pods()))) {
    t.errors.push_back(InvalidObject(path.Child("uncountedTerminatedPods"), uncounted,
                                     "uncountedTerminatedPods needs to be empty for finished job"));
  }
}

void CheckIndexes(Transition& t) {
  const batchv1::JobStatus& status = t.now();
  const batchv1::JobSpec& spec = t.job.spec();
  const Path completed = t.path.Child("completedIndexes"), failed = t.path.Child("failedIndexes");
  const auto parse = [&](const Path& path, const std::string& text, std::string_view name) {
    const Result<IndexRanges> ranges = ParseIndexRanges(text, spec.completions());
    if (!ranges) {
      t.errors.push_back(
          Invalid(path, text, fmt::format("error parsing {}: {}", name, ranges.error().message())));
    }
  };
  if (t.completed_indexes_changed && spec.has_completions()) {
    parse(completed, status.completed_indexes(), "completedIndexes");
  }
  if (t.failed_indexes_changed && spec.has_completions() && spec.has_backoff_limit_per_index() &&
      status.has_failed_indexes()) {
    parse(failed, status.failed_indexes(), "failedIndexes");
  }
  if (t.completed_indexes_changed && !status.completed_indexes().empty() &&
      spec.completion_mode() != "Indexed") {
    t.errors.push_back(Invalid(completed, status.completed_indexes(),
                               "cannot set non-empty completedIndexes when non-indexed completion mode"));
  }
  if (t.failed_indexes_changed && status.has_failed_indexes() && !spec.has_backoff_limit_per_index()) {
    t.errors.push_back(Invalid(failed, status.failed_indexes(),
                               "cannot set non-null failedIndexes when backoffLimitPerIndex is null"));
  }
  if (!(t.completed_indexes_changed || t.failed_indexes_changed) || !spec.has_completions()) return;
  const Result<IndexRanges> good = ParseIndexRanges(status.completed_indexes(), spec.completions());
  const Result<IndexRanges> bad = ParseIndexRanges(status.failed_indexes(), spec.completions());
  if (!good || !bad) return;
  if (const std::optional<int32_t> both = FirstOverlap(*good, *bad)) {
    t.errors.push_back(
        Invalid(failed, status.failed_indexes(),
                fmt::format("failedIndexes and completedIndexes overlap at index: {}", *both)));
  }
}

void CheckConditionPairs(Transition& t) {
  const bool complete = IsTrue(t.job, "Complete"), failed = IsTrue(t.job, "Failed");
  const bool met = IsTrue(t.job, "SuccessCriteriaMet"), target = IsTrue(t.job, "FailureTarget");
  if (met && failed) t.Condition("cannot set SuccessCriteriaMet=True and Failed=true conditions");
  if (met && target) t.Condition("cannot set SuccessCriteriaMet=True and FailureTarget=true conditions");
  if (t.job.spec().has_success_policy() && !met && complete) {
    t.Condition("cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True");
  }
}

// Counts and times that must not go back.
void CheckProgress(Transition& t) {
  for (std::string_view type : {"Failed", "Complete", "FailureTarget"}) {
    if (IsTrue(t.old, type) && !IsTrue(t.job, type)) {
      t.Condition(fmt::format("cannot disable the terminal {}=True condition", type));
    }
  }
  const batchv1::JobStatus &now = t.now(), &before = t.before();
  if (now.failed() < before.failed()) {
    t.errors.push_back(
        Invalid(t.path.Child("failed"), int64_t{now.failed()}, "cannot decrease the failed counter"));
  }
  // An elastic Job that shrinks has fewer successes too.
  const batchv1::JobSpec& spec = t.job.spec();
  const bool elastic = spec.completion_mode() == "Indexed" &&
                       spec.has_completions() == spec.has_parallelism() &&
                       spec.completions() == spec.parallelism();
  if (now.succeeded() < before.succeeded() && !elastic) {
    t.errors.push_back(Invalid(t.path.Child("succeeded"), int64_t{now.succeeded()},
                               "cannot decrease the succeeded counter"));
  }
  if (now.has_completion_time() && before.has_completion_time() && t.end_changed) {
    t.Time("completionTime", now.completion_time(), "completionTime cannot be mutated");
  }
  if (before.has_start_time() && t.start_changed && !spec.suspend()) {
    t.errors.push_back(Required(t.path.Child("startTime"),
                                now.has_start_time() ? "startTime cannot be modified for unsuspended job"
                                                     : "startTime cannot be removed for unsuspended job"));
  }
  const bool met = IsTrue(t.job, "SuccessCriteriaMet"), was_met = IsTrue(t.old, "SuccessCriteriaMet");
  if (was_met && !met) t.Condition("cannot disable the SuccessCriteriaMet=True condition");
  if (IsTrue(t.old, "Complete") && !was_met && met) {
    t.Condition("cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions");
  }
}

}  // namespace

void CheckJobStatus(const batchv1::Job& object, const batchv1::Job& old, FieldErrors& errors) {
  const Path path("status");
  const batchv1::JobStatus &status = object.status(), &before = old.status();
  const auto changed = [&](std::string_view type) { return IsTrue(object, type) != IsTrue(old, type); };
  Transition t{
      object,
      old,
      path,
      errors,
      IsFinished(object) != IsFinished(old),
      changed("Complete"),
      changed("Failed"),
      changed("FailureTarget"),
      changed("SuccessCriteriaMet"),
      !SameTime(status.has_start_time(), status.start_time(), before.has_start_time(), before.start_time()),
      !SameTime(status.has_completion_time(), status.completion_time(), before.has_completion_time(),
                before.completion_time()),
      status.completed_indexes() != before.completed_indexes(),
      status.has_failed_indexes() != before.has_failed_indexes() ||
          status.failed_indexes() != before.failed_indexes()};
  CheckCounters({{"active", status.active()},
                 {"succeeded", status.succeeded()},
                 {"failed", status.failed()},
                 {"ready", status.ready()},
                 {"terminating", status.terminating()}},
                path, errors);
  CheckUncounted(status, path.Child("uncountedTerminatedPods"), errors);
  const bool complete = IsTrue(object, "Complete");
  if ((t.complete_changed || t.failed_changed) && complete && IsTrue(object, "Failed")) {
    t.Condition("cannot set Complete=True and Failed=true conditions");
  }
  if ((t.complete_changed || t.target_changed) && complete && IsTrue(object, "FailureTarget")) {
    t.Condition("cannot set Complete=True and FailureTarget=true conditions");
  }
  CheckCompletionTime(t);
  CheckAnnounced(t);
  CheckFinished(t);
  CheckIndexes(t);
  CheckPods(t);
  CheckConditionPairs(t);
  CheckProgress(t);
}

}  // namespace keelson::k8s
