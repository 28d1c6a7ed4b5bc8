// Keeps the number of pods of a ReplicaSet or ReplicationController.
#pragma once

#include <atomic>
#include <optional>

#include "controlplane/controllers/common/controller.h"
#include "controlplane/controllers/common/controller_ref_manager.h"
#include "controlplane/controllers/common/expectations.h"
#include "controlplane/controllers/common/pod_control.h"
#include "controlplane/controllers/replicaset/plan.h"
#include "lib/api/selector.h"

namespace keelson::controllers {

struct ReplicaSetKind {
  using Object = appsv1::ReplicaSet;
  static constexpr char kQueue[] = "replicaset", kKind[] = "ReplicaSet";
  static const appsv1::ReplicaSet& AsSet(const Object& object) { return object; }
  static void SetStatus(const appsv1::ReplicaSetStatus& status, Object& object) {
    *object.mutable_status() = status;
  }
};

struct ReplicationControllerKind {
  using Object = corev1::ReplicationController;
  static constexpr char kQueue[] = "replicationmanager", kKind[] = "ReplicationController";
  // Converts to the equivalent ReplicaSet.
  static appsv1::ReplicaSet AsSet(const Object& object);
  static void SetStatus(const appsv1::ReplicaSetStatus& status, Object& object);
};

template <typename Kind>
class ReplicaController : public Controller {
 public:
  using Object = typename Kind::Object;
  ReplicaController(client::RestClient api, client::InformerFactory& informers, client::EventRecorder& events,
                    Clock& clock);
  Result<Requeue> Reconcile(const std::string& key, std::stop_token stop) override;

 private:
  void OnSet(const client::Change<Object>& change);
  void OnPod(const client::Change<corev1::Pod>& change);
  void EnqueueMatching(const corev1::Pod& orphan);
  // The key of the set that controls the pod, matched by UID; nullopt when there is none.
  std::optional<std::string> KeyOfOwner(const corev1::Pod& pod) const;

  // The state of one Reconcile() call; `set` is `object` converted.
  struct Sync {
    client::RestClient api;
    const std::string& key;
    const Object& object;
    const appsv1::ReplicaSet& set;
  };
  struct Claimed {
    PodPointers active;
    int terminating = 0;
  };
  Result<Claimed> ClaimPods(const Sync& sync, const api::LabelSelector& selector);
  // Creates or deletes pods to match spec.replicas; returns the first failure.
  Result<> ManageReplicas(const Sync& sync, const PodPointers& active);
  Result<> CreatePods(const Sync& sync, int count);
  Result<> DeletePods(const Sync& sync, const PodPointers& pods);
  PodPointers RelatedPods(const Object& object) const;

  client::RestClient api_;
  PodControl control_;
  client::Informer<Object>& sets_;
  client::Informer<corev1::Pod>& pods_;
  Expectations expectations_;
};

using ReplicaSetController = ReplicaController<ReplicaSetKind>;
using ReplicationControllerController = ReplicaController<ReplicationControllerKind>;

}  // namespace keelson::controllers
