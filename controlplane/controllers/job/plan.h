// What becomes of a Job: pure functions without I/O. One sync goes through them from top to bottom:
//
//   LookAt()       counts the Job's pods and decides whether it is to end
//   PlanPods()     which pods to make or remove, when it is not
//   Settle()       complete, suspended or resumed, now that pods were made and removed
//   CountEnded()   notes ended pods in status.uncountedTerminatedPods; status is written; finalizers come off
//   SettleCounted() moves pods whose finalizer is off into the counters
//   Finish()       the last condition, when nothing is left to count; status is written
//
// A pod is counted by its UID (or its completion index) while it has the finalizer, and by a counter after:
// whatever the controller is killed between, no pod is counted twice or missed.
#pragma once

#include <map>
#include <set>

#include "controlplane/controllers/job/failures.h"
#include "controlplane/controllers/job/indexes.h"

namespace keelson::controllers {

struct JobLook {
  batchv1::Job job;  // its status becomes, step by step, what is written
  PodPointers pods;
  // UIDs of pods whose finalizer has come off, though the local store may still show it.
  std::set<std::string> released;
  WallTime now;

  PodPointers active;
  int32_t active_count = 0, ready = 0, terminating = 0;  // move with what is made and removed
  int32_t succeeded = 0, failed = 0;
  IndexRanges counted_indexes, succeeded_indexes;  // by the status; with pods that are not counted yet
  std::optional<IndexRanges> failed_indexes;       // only with backoffLimitPerIndex
  // The last failed pod of indexes without an active one: it stays tracked until its replacement carries
  // its count on.
  std::map<int32_t, PodPointer> awaiting;
  Backoff backoff;
  // The Job is to end: SuccessCriteriaMet or FailureTarget when that is decided, then Complete or Failed.
  std::optional<batchv1::JobCondition> finish;

  bool counted(const corev1::Pod& pod) const;  // the finalizer is off
};

JobLook LookAt(const batchv1::Job& job, PodPointers pods, std::set<std::string> released, Backoff backoff,
               WallTime now);
// When activeDeadlineSeconds will be over; nullopt: there is no such limit now.
std::optional<std::chrono::nanoseconds> DeadlineAfter(const JobLook& look);

struct PodPlan {
  PodPointers remove;  // and then none are made
  size_t create = 0;
  std::vector<int32_t> indexes;                  // of the pods to make; empty: not an indexed Job
  std::optional<std::chrono::nanoseconds> wait;  // until (more) pods may be made
};
inline constexpr size_t kMaxPodsPerSync = 500;
PodPlan PlanPods(const JobLook& look);
corev1::Pod NewJobPod(const JobLook& look, std::optional<int32_t> index);

// Returns "Suspended" or "Resumed" when that has changed; its event is the caller's. `managed`: PlanPods()
// was carried out in this sync.
std::string Settle(JobLook& look, bool managed);

struct Tally {
  PodPointers release;                        // their finalizers come off once the status is written
  std::set<std::string> tracked;              // UIDs of pods that have it
  bool changed = false;                       // the status
  bool partial = false;                       // there was more than one status may hold; another sync goes on
  std::map<std::string, int> policy_actions;  // of the pod failure policy, on pods that are counted now
};
Tally CountEnded(JobLook& look);
// Whether the status has changed.
bool SettleCounted(batchv1::JobStatus& status, const std::set<std::string>& tracked);
// True: the status now says Complete or Failed.
bool Finish(JobLook& look, const Tally& tally);

batchv1::JobCondition MakeJobCondition(std::string_view type, std::string_view reason,
                                       std::string_view message, WallTime now);

}  // namespace keelson::controllers
