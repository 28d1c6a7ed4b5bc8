#include "controlplane/controllers/deployment/controller.h"

#include <fmt/format.h>
#include <google/protobuf/util/message_differencer.h>

#include "controlplane/controllers/common/controller_ref_manager.h"
#include "lib/api/meta.h"
#include "lib/k8s/pods/pod_util.h"

namespace keelson::controllers {

using google::protobuf::util::MessageDifferencer;

SetPointers DeploymentController::Sync::all() const {
  SetPointers out = old_sets;
  if (new_set) out.push_back(new_set);
  return out;
}

DeploymentController::DeploymentController(client::RestClient api, client::InformerFactory& informers,
                                           client::EventRecorder& events, Clock& clock)
    : Controller("deployment", clock, 4),
      api_(std::move(api)),
      events_(events),
      deployments_(informers.Get<appsv1::Deployment>()),
      sets_(informers.Get<appsv1::ReplicaSet>()),
      pods_(informers.Get<corev1::Pod>()) {
  sets_.AddIndex(kByOwner, [](const appsv1::ReplicaSet& set) { return OwnerIndex(set.metadata()); });
  pods_.AddIndex(kByOwner, [](const corev1::Pod& pod) { return OwnerIndex(pod.metadata()); });
  deployments_.AddHandler([this](const auto& change) { queue().Add(change.key); });
  sets_.AddHandler([this](const auto& change) { OnSet(change); });
  pods_.AddHandler([this](const auto& change) { OnPod(change); });
}

std::optional<std::string> DeploymentController::KeyOfOwner(const metav1::ObjectMeta& meta) const {
  const metav1::OwnerReference* owner = api::ControllerOf(meta);
  if (!owner || owner->kind() != "Deployment") return std::nullopt;
  std::string key = api::KeyOf(meta.namespace_(), owner->name());
  auto deployment = deployments_.Get(key);
  if (!deployment || deployment->metadata().uid() != owner->uid()) return std::nullopt;
  return key;
}

void DeploymentController::OnSet(const client::Change<appsv1::ReplicaSet>& change) {
  const appsv1::ReplicaSet& set = change.object();
  std::optional<std::string> owner = KeyOfOwner(set.metadata());
  if (owner) queue().Add(*owner);
  if (change.old_object && change.new_object) {
    std::optional<std::string> before = KeyOfOwner(change.old_object->metadata());
    if (before && before != owner) queue().Add(*before);
  }
  if (!change.new_object || api::ControllerOf(set.metadata())) return;
  for (const auto& deployment : deployments_.List()) {
    if (deployment->metadata().namespace_() != set.metadata().namespace_()) continue;
    auto selector = api::LabelSelector::From(deployment->spec().selector());
    if (selector && !selector->IsEverything() && selector->Matches(set.metadata().labels())) {
      queue().Add(api::KeyOf(*deployment));
    }
  }
}

// Recreate waits until the last old pod is gone.
void DeploymentController::OnPod(const client::Change<corev1::Pod>& change) {
  if (change.new_object) return;
  const metav1::ObjectMeta& meta = change.object().metadata();
  const metav1::OwnerReference* owner = api::ControllerOf(meta);
  if (!owner || owner->kind() != "ReplicaSet") return;
  auto set = sets_.Get(meta.namespace_(), owner->name());
  if (!set || set->metadata().uid() != owner->uid()) return;
  std::optional<std::string> key = KeyOfOwner(set->metadata());
  if (!key) return;
  auto deployment = deployments_.Get(*key);
  if (deployment && deployment->spec().strategy().type() == "Recreate") queue().Add(*key);
}

// The progress deadline does not run while the Deployment is paused.
Result<> DeploymentController::NotePaused(Sync& sync) {
  if (!HasProgressDeadline(sync.deployment)) return {};
  const auto* condition = FindCondition(sync.deployment.status(), "Progressing");
  if (condition && condition->reason() == "ProgressDeadlineExceeded") return {};
  const bool noted = condition && condition->reason() == "DeploymentPaused";
  if (sync.deployment.spec().paused() == noted) return {};
  appsv1::DeploymentStatus status = sync.deployment.status();
  SetCondition(status, noted ? MakeCondition("Progressing", "Unknown", "DeploymentResumed",
                                             "Deployment is resumed", clock().Now())
                             : MakeCondition("Progressing", "Unknown", "DeploymentPaused",
                                             "Deployment is paused", clock().Now()));
  return WriteStatus(sync, status);
}

Result<> DeploymentController::WriteStatus(Sync& sync, const appsv1::DeploymentStatus& status) {
  if (MessageDifferencer::Equals(status, sync.deployment.status())) return {};
  *sync.deployment.mutable_status() = status;
  KEELSON_ASSIGN_OR_RETURN(sync.deployment, sync.api.UpdateStatus(sync.deployment));
  return {};
}

Result<bool> DeploymentController::Resize(Sync& sync, const Sizes& sizes) {
  bool resized = false;
  auto apply = [&](SetPointer& set) -> Result<> {
    auto it = sizes.find(set->metadata().name());
    if (it == sizes.end()) return {};
    const int32_t before = set->spec().replicas();
    appsv1::ReplicaSet changed = *set;
    changed.mutable_spec()->set_replicas(it->second);
    const bool annotated = AnnotateReplicas(sync.deployment, changed);
    if (before == it->second && !annotated) return {};
    KEELSON_ASSIGN_OR_RETURN(changed, sync.api.Update(changed));
    set = std::make_shared<appsv1::ReplicaSet>(std::move(changed));
    if (before == it->second) return {};
    resized = true;
    events_.Record(sync.deployment, "Normal", "ScalingReplicaSet",
                   fmt::format("Scaled {} replica set {} from {} to {}", before < it->second ? "up" : "down",
                               set->metadata().name(), before, it->second));
    return {};
  };
  for (SetPointer& set : sync.old_sets) KEELSON_RETURN_IF_ERROR(apply(set));
  if (sync.new_set) KEELSON_RETURN_IF_ERROR(apply(sync.new_set));
  return resized;
}

Result<> DeploymentController::CleanUp(Sync& sync) {
  for (const SetPointer& set : SetsToCleanUp(sync.deployment, sync.old_sets)) {
    const metav1::ObjectMeta& meta = set->metadata();
    Result<> deleted =
        sync.api.Delete<appsv1::ReplicaSet>(meta.namespace_(), meta.name(), {.uid = meta.uid()});
    if (!deleted && !deleted.error().Is(Code::kNotFound)) {
      return deleted.error().Wrap("delete old ReplicaSet");
    }
  }
  return {};
}

bool DeploymentController::OldPodsRunning(const Sync& sync) const {
  if (SumStatus(sync.old_sets) > 0) return true;
  for (const SetPointer& set : sync.old_sets) {
    for (const auto& pod : pods_.ByIndex(kByOwner, set->metadata().uid())) {
      if (!k8s::IsTerminal(*pod)) return true;
    }
  }
  return false;
}

Result<Requeue> DeploymentController::WriteRolloutStatus(Sync& sync) {
  const WallTime now = clock().Now();
  KEELSON_RETURN_IF_ERROR(WriteStatus(sync, RolloutStatus(sync.deployment, sync.new_set, sync.all(), now)));
  return Requeue{StuckCheckAfter(sync.deployment, sync.deployment.status(), now)};
}

Result<Requeue> DeploymentController::RollingUpdate(Sync& sync, const SetPointers& sets) {
  KEELSON_RETURN_IF_ERROR(FindSets(sync, sets, true));
  if (!sync.new_set) return Requeue{};
  KEELSON_ASSIGN_OR_RETURN(bool resized,
                           Resize(sync, PlanRollingUpdate(sync.deployment, sync.new_set, sync.all())));
  if (!resized && IsComplete(sync.deployment, sync.deployment.status())) {
    KEELSON_RETURN_IF_ERROR(CleanUp(sync));
  }
  return WriteRolloutStatus(sync);
}

Result<Requeue> DeploymentController::Recreate(Sync& sync, const SetPointers& sets) {
  KEELSON_RETURN_IF_ERROR(FindSets(sync, sets, false));
  Sizes down;
  for (const SetPointer& set : WithReplicas(sync.old_sets)) down[set->metadata().name()] = 0;
  KEELSON_ASSIGN_OR_RETURN(bool resized, Resize(sync, down));
  if (resized || OldPodsRunning(sync)) return WriteRolloutStatus(sync);
  if (!sync.new_set) KEELSON_RETURN_IF_ERROR(FindSets(sync, sets, true));
  if (!sync.new_set) return Requeue{};
  KEELSON_RETURN_IF_ERROR(
      Resize(sync, {{sync.new_set->metadata().name(), sync.deployment.spec().replicas()}}));
  if (IsComplete(sync.deployment, sync.deployment.status())) KEELSON_RETURN_IF_ERROR(CleanUp(sync));
  return WriteRolloutStatus(sync);
}

// Paused or scaled: create no new ReplicaSet, but scale the existing ones to spec.replicas.
Result<Requeue> DeploymentController::ScaleOnly(Sync& sync, const SetPointers& sets) {
  KEELSON_RETURN_IF_ERROR(FindSets(sync, sets, false));
  KEELSON_RETURN_IF_ERROR(Resize(sync, PlanScale(sync.deployment, sync.new_set, sync.old_sets)));
  if (sync.deployment.spec().paused()) KEELSON_RETURN_IF_ERROR(CleanUp(sync));
  KEELSON_RETURN_IF_ERROR(
      WriteStatus(sync, CountStatus(sync.deployment, sync.new_set, sync.all(), clock().Now())));
  return Requeue{};
}

Result<Requeue> DeploymentController::Reconcile(const std::string& key, std::stop_token stop) {
  auto deployment = deployments_.Get(key);
  if (!deployment) return Requeue{};
  KEELSON_ASSIGN_OR_RETURN(api::LabelSelector selector,
                           api::LabelSelector::From(deployment->spec().selector()));
  if (selector.IsEverything()) {
    events_.Record(*deployment, "Warning", "SelectingAll",
                   "This deployment is selecting all pods. A non-empty selector is required.");
    return Requeue{};
  }
  Sync sync{api_.With(stop), *deployment, {}, nullptr};
  KEELSON_ASSIGN_OR_RETURN(SetPointers sets,
                           ClaimObjects<appsv1::ReplicaSet>(sync.api, sets_, sync.deployment, selector));
  if (deployment->metadata().has_deletion_timestamp()) {
    sync.new_set = FindNewSet(sync.deployment, sets);
    sync.old_sets = Without(sets, sync.new_set);
    KEELSON_RETURN_IF_ERROR(
        WriteStatus(sync, CountStatus(sync.deployment, sync.new_set, sync.all(), clock().Now())));
    return Requeue{};
  }
  KEELSON_RETURN_IF_ERROR(NotePaused(sync));
  if (sync.deployment.spec().paused()) return ScaleOnly(sync, sets);
  if (auto revision = RollbackRevision(sync.deployment)) return RollBack(sync, sets, *revision);
  if (IsScaling(sync.deployment, sets)) return ScaleOnly(sync, sets);
  if (sync.deployment.spec().strategy().type() == "Recreate") return Recreate(sync, sets);
  return RollingUpdate(sync, sets);
}

}  // namespace keelson::controllers
