// Rolls out deployments by making and resizing ReplicaSets.
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
  // One Reconcile(): the deployment as it is written along the way, and its sets.
  struct Sync {
    client::RestClient api;
    appsv1::Deployment deployment;
    SetPointers old_sets;
    SetPointer new_set;  // null: not made yet
    SetPointers all() const;
  };

  void OnSet(const client::Change<appsv1::ReplicaSet>& change);
  void OnPod(const client::Change<corev1::Pod>& change);
  std::optional<std::string> KeyOfOwner(const metav1::ObjectMeta& meta) const;

  Result<> NotePaused(Sync& sync);
  // Finds the new set among `sets`, brings its revision and the deployment's up to date, or makes it.
  Result<> FindSets(Sync& sync, const SetPointers& sets, bool create);
  Result<> AdvanceNewSet(Sync& sync, int64_t revision);
  Result<> CreateNewSet(Sync& sync, int64_t revision);
  Result<> CreationFailed(Sync& sync, const appsv1::ReplicaSet& wanted, const Error& error);
  // Records the revision on the deployment, and that its new set was found or made.
  Result<> NoteNewSet(Sync& sync, std::string_view reason, std::string message, int64_t revision);
  // Applies a plan; true when anything was resized. Sets in `sync` are replaced by what was stored.
  Result<bool> Resize(Sync& sync, const Sizes& sizes);
  Result<> CleanUp(Sync& sync);
  bool OldPodsRunning(const Sync& sync) const;

  // Answers the annotation kRollbackTo, once: it is taken off whether or not there is such a revision.
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
