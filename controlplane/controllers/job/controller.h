// Runs the pods of Jobs until enough of them have succeeded or too many have failed.
#pragma once

#include <optional>

#include "controlplane/controllers/common/consistency_store.h"
#include "controlplane/controllers/common/controller.h"
#include "controlplane/controllers/common/expectations.h"
#include "controlplane/controllers/common/pod_control.h"
#include "controlplane/controllers/job/metrics.h"
#include "controlplane/controllers/job/plan.h"
#include "controlplane/controllers/job/tracking.h"

namespace keelson::controllers {

class JobController : public Controller {
 public:
  JobController(client::RestClient api, client::InformerFactory& informers, client::EventRecorder& events,
                Clock& clock);
  Result<Requeue> Reconcile(const std::string& key, std::stop_token stop) override;

 private:
  struct Sync {
    client::RestClient api;
    const std::string& key;
    JobLook look;
    bool satisfied;  // the store shows all creations and deletions of earlier syncs
    Requeue again{};
    SyncAction action = SyncAction::kReconciling;
    std::string suspended{};  // "Suspended" or "Resumed": the event to record

    void Again(std::chrono::nanoseconds after) { again.after = std::min(again.after.value_or(after), after); }
  };

  void OnJob(const client::Change<batchv1::Job>& change);
  void OnPod(const client::Change<corev1::Pod>& change);
  void EnqueueMatching(const corev1::Pod& orphan);
  std::optional<std::string> KeyOfOwner(const corev1::Pod& pod) const;

  // Creates or deletes pods; deletes all of them when the Job ends. Updates the counts in sync.look for each
  // success.
  Result<> ManagePods(Sync& sync);
  Result<> CreatePods(Sync& sync, const PodPlan& plan);
  // `spare`: the pods do not count as failures, so their finalizers are removed before the deletion.
  Result<> RemovePods(Sync& sync, const PodPointers& pods, bool spare);
  // Counts ended pods, writes the status, removes finalizers, and finishes the Job.
  Result<> Record(Sync& sync);
  Result<> ReleasePods(Sync& sync, Tally& tally);
  Result<> WriteStatus(Sync& sync);
  void NoteEnd(const batchv1::Job& job, const batchv1::JobCondition& end);

  client::RestClient api_;
  client::EventRecorder& events_;
  PodControl control_;
  client::Informer<batchv1::Job>& jobs_;
  client::Informer<corev1::Pod>& pods_;
  Expectations expectations_;
  ConsistencyStore written_;
  FinalizerExpectations released_;
  BackoffStore backoffs_;
};

// Removes the tracking finalizer from a pod. Succeeds when the pod is gone or has no such finalizer.
// `unchanged`: requires the stored pod's resourceVersion to match, else kConflict.
Result<> RemoveTracking(const client::RestClient& api, const corev1::Pod& pod, bool unchanged = false);

}  // namespace keelson::controllers
