// What a Job's pods say about failure: which have failed, when, and what the pod failure policy makes of it.
// Pure functions.
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
bool HasCondition(const batchv1::Job& job, std::string_view type);  // and it is True
bool IsFinished(const batchv1::Job& job);                           // Complete or Failed
bool IsManagedElsewhere(const batchv1::Job& job);                   // spec.managedBy names another controller

bool IsTracked(const corev1::Pod& pod);  // has the finalizer: not counted for good yet
// Of a pod of an indexed Job; nullopt when it has no such annotation or a bad one.
std::optional<int32_t> CompletionIndex(const corev1::Pod& pod);

// Replacements wait until a pod is really gone (podReplacementPolicy Failed).
bool ReplacesOnlyFailed(const batchv1::Job& job);
// Failed, or about to be deleted where that counts the same.
bool HasFailed(const corev1::Pod& pod, const batchv1::Job& job);
// When the pod ended, as well as it can be told.
WallTime FinishedAt(const corev1::Pod& pod);

struct FailureVerdict {
  std::string action;   // FailJob, FailIndex, Ignore, Count; empty: no rule matched
  std::string message;  // of FailJob
  bool counts = true;   // towards backoffLimit
};
// What the policy's first matching rule says of a failed pod.
FailureVerdict JudgeFailure(const batchv1::Job& job, const corev1::Pod& pod);

// How often this pod's index failed before it, as its annotations say; with failures that were ignored.
struct IndexFailures {
  int32_t counted = 0, ignored = 0;
};
IndexFailures FailuresBefore(const corev1::Pod& pod);
// The same with this pod's own failure: what its replacement will carry.
IndexFailures FailuresWith(const batchv1::Job& job, const corev1::Pod& pod);
// This pod's failure makes its whole index fail (backoffLimitPerIndex, FailIndex).
bool FailsIndex(const batchv1::Job& job, const corev1::Pod& pod);

// Failures in a row and when the last one was.
struct Backoff {
  int32_t failures = 0;
  WallTime last{};
};
// After the pods that have finished since.
Backoff NextBackoff(Backoff before, const PodPointers& succeeded, const PodPointers& failed);
// How long until the next pod may be created: 10 s after one failure, doubled for each, at most 10 minutes.
std::chrono::nanoseconds BackoffLeft(const Backoff& backoff, WallTime now);

}  // namespace keelson::controllers
