// Keeps one pod of each DaemonSet on every eligible node, and rolls out new templates.
#pragma once

#include <atomic>
#include <optional>

#include "controlplane/controllers/common/controller.h"
#include "controlplane/controllers/common/controller_ref_manager.h"
#include "controlplane/controllers/common/expectations.h"
#include "controlplane/controllers/common/history.h"
#include "controlplane/controllers/common/pod_control.h"
#include "controlplane/controllers/daemonset/failed_pods_backoff.h"
#include "controlplane/controllers/daemonset/plan.h"
#include "lib/api/selector.h"

namespace keelson::controllers {

class DaemonSetController : public Controller {
 public:
  DaemonSetController(client::RestClient api, client::InformerFactory& informers,
                      client::EventRecorder& events, Clock& clock);
  Result<Requeue> Reconcile(const std::string& key, std::stop_token stop) override;

 private:
  // The state of one Reconcile() call.
  struct Sync {
    client::RestClient api;
    std::string key;
    appsv1::DaemonSet set;
    api::LabelSelector selector;
    PodPointers pods;
    RevisionPointer current;
    RevisionPointers old;
    std::optional<std::chrono::nanoseconds> again;

    std::string hash() const;
  };

  void OnPod(const client::Change<corev1::Pod>& change);
  void OnNode(const client::Change<corev1::Node>& change);
  void OnRevision(const client::Change<appsv1::ControllerRevision>& change);
  // The key of the DaemonSet that controls the object, matched by UID; nullopt when there is none.
  std::optional<std::string> KeyOfOwner(const metav1::ObjectMeta& meta) const;
  void EnqueueMatching(const metav1::ObjectMeta& orphan);

  // revisions.cc: finds or creates the revision of the current template, makes it the newest, and collects
  // the older ones.
  Result<> FindRevisions(Sync& sync);
  Result<> MakeRevision(Sync& sync, int64_t number);
  Result<> MergeDuplicates(Sync& sync, RevisionPointers same);
  Result<> LabelWithHash(const Sync& sync, const RevisionPointer& revision, RevisionPointer& labelled);
  Result<> CleanUp(const Sync& sync);

  Result<> Process(Sync& sync);
  Result<> Apply(const Sync& sync, const DaemonChanges& changes);
  Result<> WriteStatus(Sync& sync, bool settled);
  Result<Requeue> Finish(Sync& sync, Result<> result, bool settled);

  client::RestClient api_;
  client::EventRecorder& events_;
  PodControl control_;
  client::Informer<appsv1::DaemonSet>& sets_;
  client::Informer<corev1::Pod>& pods_;
  client::Informer<corev1::Node>& nodes_;
  client::Informer<appsv1::ControllerRevision>& revisions_;
  Expectations expectations_;
  FailedPodsBackoff failed_;
};

}  // namespace keelson::controllers
