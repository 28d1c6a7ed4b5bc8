// The steps of a Job sync, in order. Pure functions.
//
//   LookAt()         counts the Job's pods and decides whether the Job ends
//   PlanPods()       which pods to create or delete, when it does not end
//   Settle()         complete, suspended or resumed, after pods were created and deleted
//   CountEnded()     adds ended pods to status.uncountedTerminatedPods; then the caller writes the status and
//                    removes the finalizers
//   SettleCounted()  moves pods without finalizer into the counters
//   Finish()         sets the final condition when no pod is left to count; the caller writes the status
//
// A pod counts by its UID (or completion index) while it has the finalizer, and in a counter afterwards. A
// controller killed between any two steps neither misses a pod nor counts it twice.
#pragma once

#include <map>
#include <set>

#include "controlplane/controllers/job/failures.h"
#include "controlplane/controllers/job/indexes.h"

namespace keelson::controllers {

struct JobLook {
  batchv1::Job job;  // its status is updated step by step, then written
  PodPointers pods;
  // UIDs of pods whose finalizer has been removed, although the store may still show it.
  std::set<std::string> released;
  WallTime now;

  PodPointers active;
  int32_t active_count = 0, ready = 0, terminating = 0;  // updated as pods are created and deleted
  int32_t succeeded = 0, failed = 0;
  // `counted_indexes`: in the status; `succeeded_indexes`: also pods not counted yet
  IndexRanges counted_indexes, succeeded_indexes;
  std::optional<IndexRanges> failed_indexes;  // only with backoffLimitPerIndex
  // The last failed pod of each index without an active pod. It keeps its finalizer until its replacement has
  // taken over its failure count.
  std::map<int32_t, PodPointer> awaiting;
  Backoff backoff;
  // Set when the Job ends: first SuccessCriteriaMet or FailureTarget, then Complete or Failed.
  std::optional<batchv1::JobCondition> finish;

  bool counted(const corev1::Pod& pod) const;  // the finalizer is removed
};

JobLook LookAt(const batchv1::Job& job, PodPointers pods, std::set<std::string> released, Backoff backoff,
               WallTime now);
// Time until activeDeadlineSeconds expires; nullopt: no deadline applies now.
std::optional<std::chrono::nanoseconds> DeadlineAfter(const JobLook& look);

struct PodPlan {
  PodPointers remove;  // when not empty, no pods are created
  size_t create = 0;
  std::vector<int32_t> indexes;                  // indexes of the pods to create; empty: not an indexed Job
  std::optional<std::chrono::nanoseconds> wait;  // time until (more) pods may be created
};
inline constexpr size_t kMaxPodsPerSync = 500;
PodPlan PlanPods(const JobLook& look);
corev1::Pod NewJobPod(const JobLook& look, std::optional<int32_t> index);

// Updates the Suspended and completion conditions. Returns "Suspended" or "Resumed" when that changed; the
// caller records the event. `managed`: this sync carried out PlanPods().
std::string Settle(JobLook& look, bool managed);

struct Tally {
  PodPointers release;            // pods whose finalizers to remove once the status is written
  std::set<std::string> tracked;  // UIDs of pods that have the finalizer
  bool changed = false;           // the status changed
  // The status could not hold all ended pods; another sync must follow
  bool partial = false;
  std::map<std::string, int> policy_actions;  // actions of the pod failure policy on the pods counted now
};
Tally CountEnded(JobLook& look);
// Returns whether the status changed.
bool SettleCounted(batchv1::JobStatus& status, const std::set<std::string>& tracked);
// Returns true when the status now has Complete or Failed.
bool Finish(JobLook& look, const Tally& tally);

batchv1::JobCondition MakeJobCondition(std::string_view type, std::string_view reason,
                                       std::string_view message, WallTime now);

}  // namespace keelson::controllers
