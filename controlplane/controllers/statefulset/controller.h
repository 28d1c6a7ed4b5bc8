// Keeps one pod per ordinal of a StatefulSet, each with its own name and claims.
#pragma once

#include <optional>

#include "controlplane/controllers/common/consistency_store.h"
#include "controlplane/controllers/common/controller.h"
#include "controlplane/controllers/common/history.h"
#include "controlplane/controllers/statefulset/claims.h"
#include "controlplane/controllers/statefulset/plan.h"
#include "lib/api/selector.h"

namespace keelson::controllers {

class StatefulSetController : public Controller {
 public:
  StatefulSetController(client::RestClient api, client::InformerFactory& informers,
                        client::EventRecorder& events, Clock& clock);
  Result<Requeue> Reconcile(const std::string& key, std::stop_token stop) override;

 private:
  struct Sync {
    client::RestClient api;
    const std::string& key;
    appsv1::StatefulSet set;
    RevisionPointers revisions{};
    RevisionPointer current{}, update{};
  };

  void OnPod(const client::Change<corev1::Pod>& change);
  void OnClaimGone(const corev1::PersistentVolumeClaim& claim);
  void EnqueueMatching(const corev1::Pod& orphan);
  std::optional<std::string> KeyOfOwner(const corev1::Pod& pod) const;

  // Finds or creates the revision of the current template and makes it the newest (null: the set is being
  // deleted); also finds the revision of the existing pods.
  Result<> FindRevisions(Sync& sync, const api::LabelSelector& selector);
  Result<> RemoveOldRevisions(Sync& sync, const PodPointers& pods);
  Result<> Carry(Sync& sync, const SetView& view, const SetPlan& plan);
  Result<> CreatePod(Sync& sync, const SetView& view, int32_t ordinal);
  Result<> DeletePod(Sync& sync, const corev1::Pod& pod);
  Result<> TendPod(Sync& sync, const corev1::Pod& pod);
  Result<> WriteStatus(Sync& sync, const appsv1::StatefulSetStatus& status);
  // Records an event about a pod, in upstream's words.
  void Note(const Sync& sync, const char* verb, const std::string& pod, const Result<>& result);

  client::RestClient api_;
  client::EventRecorder& events_;
  client::Informer<appsv1::StatefulSet>& sets_;
  client::Informer<corev1::Pod>& pods_;
  client::Informer<appsv1::ControllerRevision>& revisions_;
  SetClaims claims_;
  ConsistencyStore written_;
};

}  // namespace keelson::controllers
