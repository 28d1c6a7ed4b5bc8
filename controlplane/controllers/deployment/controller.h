// Rolls out Deployments by creating and scaling ReplicaSets.
#pragma once

#include <optional>

#include "controlplane/controllers/common/controller.h"
#include "controlplane/controllers/deployment/plan.h"
#include "lib/api/selector.h"

namespace keelson::controllers {

class DeploymentController : public Controller {
 public:
  DeploymentController(client::RestClient api, client::InformerFactory& informers,
                       client::EventRecorder& events, Clock& clock);
  Result<Requeue> Reconcile(const std::string& key, std::stop_token stop) override;

 private:
  // The state of one Reconcile() call: the Deployment, updated as it is written, and its ReplicaSets.
  struct Sync {
    client::RestClient api;
    appsv1::Deployment deployment;
    SetPointers old_sets;
    SetPointer new_set;  // null: not created yet
    SetPointers all() const;
  };

  void OnSet(const client::Change<appsv1::ReplicaSet>& change);
  void OnPod(const client::Change<corev1::Pod>& change);
  std::optional<std::string> KeyOfOwner(const metav1::ObjectMeta& meta) const;

  Result<> NotePaused(Sync& sync);
  // Finds the new ReplicaSet in `sets` and updates its revision and the Deployment's; creates it if `create`
  // is true.
  Result<> FindSets(Sync& sync, const SetPointers& sets, bool create);
  Result<> AdvanceNewSet(Sync& sync, int64_t revision);
  Result<> CreateNewSet(Sync& sync, int64_t revision);
  Result<> CreationFailed(Sync& sync, const appsv1::ReplicaSet& wanted, const Error& error);
  // Records the revision on the Deployment, and sets the Progressing condition with `reason` and `message`.
  Result<> NoteNewSet(Sync& sync, std::string_view reason, std::string message, int64_t revision);
  // Scales ReplicaSets to `sizes`. Returns true when it changed any. Replaces the ReplicaSets in `sync` by
  // the stored versions.
  Result<bool> Resize(Sync& sync, const Sizes& sizes);
  Result<> CleanUp(Sync& sync);
  bool OldPodsRunning(const Sync& sync) const;

  // Handles the annotation kRollbackTo once: removes it whether or not the revision exists.
  Result<Requeue> RollBack(Sync& sync, const SetPointers& sets, int64_t revision);
  Result<Requeue> RollingUpdate(Sync& sync, const SetPointers& sets);
  Result<Requeue> Recreate(Sync& sync, const SetPointers& sets);
  Result<Requeue> ScaleOnly(Sync& sync, const SetPointers& sets);
  Result<Requeue> WriteRolloutStatus(Sync& sync);
  Result<> WriteStatus(Sync& sync, const appsv1::DeploymentStatus& status);

  client::RestClient api_;
  client::EventRecorder& events_;
  client::Informer<appsv1::Deployment>& deployments_;
  client::Informer<appsv1::ReplicaSet>& sets_;
  client::Informer<corev1::Pod>& pods_;
};

}  // namespace keelson::controllers
