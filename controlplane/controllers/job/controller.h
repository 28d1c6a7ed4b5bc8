// Runs the pods of Jobs until enough of them have succeeded, or too many failed.
#pragma once

#include <optional>

#include "controlplane/controllers/common/controller.h"
#include "controlplane/controllers/common/expectations.h"
#include "controlplane/controllers/common/latest_writes.h"
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
    bool satisfied;  // the store shows all pods that were made and removed
    Requeue again{};
    SyncAction action = SyncAction::kReconciling;
    std::string suspended{};  // "Suspended" or "Resumed": the event to come

    void Again(std::chrono::nanoseconds after) { again.after = std::min(again.after.value_or(after), after); }
  };

  void OnJob(const client::Change<batchv1::Job>& change);
  void OnPod(const client::Change<corev1::Pod>& change);
  void EnqueueMatching(const corev1::Pod& orphan);
  std::optional<std::string> KeyOfOwner(const corev1::Pod& pod) const;

  // Makes or removes pods, all of them when the Job ends. Counts in sync.look follow what succeeded.
  Result<> ManagePods(Sync& sync);
  Result<> CreatePods(Sync& sync, const PodPlan& plan);
  // `spare`: these are no failures, their finalizers come off first.
  Result<> RemovePods(Sync& sync, const PodPointers& pods, bool spare);
  // Counts ended pods, writes status, takes finalizers off, and ends the Job.
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
  LatestWrites written_;
  ReleasedPods released_;
  Backoffs backoffs_;
};

// Takes the tracking finalizer off a pod; one that is gone or has none is no error. `unchanged`: only if the
// pod is still the same in all, else kConflict.
Result<> RemoveTracking(const client::RestClient& api, const corev1::Pod& pod, bool unchanged = false);

}  // namespace keelson::controllers
