// The failures of a Job's pods: which pods failed, when, and what the pod failure policy decides. Pure
// functions.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/api/proto/batch_v1.pb.h"
#include "lib/api/types.h"
#include "lib/base/clock.h"

namespace keelson::controllers {

namespace batchv1 = api::batch::v1;
using PodPointer = std::shared_ptr<const corev1::Pod>;
using PodPointers = std::vector<PodPointer>;

inline constexpr char kJobTracking[] = "batch.kubernetes.io/job-tracking";
inline constexpr char kCompletionIndex[] = "batch.kubernetes.io/job-completion-index";
inline constexpr char kIndexFailures[] = "batch.kubernetes.io/job-index-failure-count";
inline constexpr char kIndexIgnoredFailures[] = "batch.kubernetes.io/job-index-ignored-failure-count";

bool IsIndexed(const batchv1::Job& job);
bool IsSuspended(const batchv1::Job& job);
bool HasCondition(const batchv1::Job& job, std::string_view type);  // with status True
bool IsFinished(const batchv1::Job& job);                           // Complete or Failed
bool IsManagedElsewhere(const batchv1::Job& job);                   // spec.managedBy names another controller

bool IsTracked(const corev1::Pod& pod);  // has the tracking finalizer: not counted in the status counters yet
// The completion index of a pod of an indexed Job; nullopt when the annotation is missing or invalid.
std::optional<int32_t> CompletionIndex(const corev1::Pod& pod);

// True with podReplacementPolicy Failed: a replacement waits until the pod is terminal, not only terminating.
bool ReplacesOnlyFailed(const batchv1::Job& job);
// True when the pod has failed, or is terminating and podReplacementPolicy counts that as a failure.
bool HasFailed(const corev1::Pod& pod, const batchv1::Job& job);
// The best known end time of a finished pod.
WallTime FinishedAt(const corev1::Pod& pod);

struct FailureVerdict {
  std::string action;   // FailJob, FailIndex, Ignore, Count; empty: no rule matched
  std::string message;  // for FailJob
  bool counts = true;   // towards backoffLimit
};
// Returns the action of the first rule that matches a failed pod.
FailureVerdict JudgeFailure(const batchv1::Job& job, const corev1::Pod& pod);

// The number of earlier failures of the pod's index, from the pod's annotations.
// `ignored`: failures that the pod failure policy ignored.
struct IndexFailures {
  int32_t counted = 0, ignored = 0;
};
IndexFailures FailuresBefore(const corev1::Pod& pod);
// FailuresBefore() plus the pod's own failure: the annotations of its replacement.
IndexFailures FailuresWith(const batchv1::Job& job, const corev1::Pod& pod);
// True when this pod's failure fails its whole index (backoffLimitPerIndex, FailIndex).
bool FailsIndex(const batchv1::Job& job, const corev1::Pod& pod);

// The number of consecutive failures, and the time of the last one.
struct Backoff {
  int32_t failures = 0;
  WallTime last{};
};
// Updates the backoff with the pods that have finished since.
Backoff NextBackoff(Backoff before, const PodPointers& succeeded, const PodPointers& failed);
// Time until the next pod may be created: 10 s after one failure, doubled with each further one, at most 10
// minutes.
std::chrono::nanoseconds BackoffLeft(const Backoff& backoff, WallTime now);

}  // namespace keelson::controllers
