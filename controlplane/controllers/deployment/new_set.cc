// The new ReplicaSet of a Deployment: found, updated, or created.
#include <fmt/format.h>

#include "controlplane/controllers/deployment/controller.h"
#include "lib/api/meta.h"

namespace keelson::controllers {

Result<> DeploymentController::FindSets(Sync& sync, const SetPointers& sets, bool create) {
  sync.new_set = FindNewSet(sync.deployment, sets);
  sync.old_sets = Without(sets, sync.new_set);
  // Reusing an old template makes it the newest revision.
  const int64_t revision = MaxRevision(sync.old_sets) + 1;
  if (sync.new_set) return AdvanceNewSet(sync, revision);
  if (create) return CreateNewSet(sync, revision);
  return {};
}

Result<> DeploymentController::AdvanceNewSet(Sync& sync, int64_t revision) {
  appsv1::ReplicaSet changed = *sync.new_set;
  bool update = AnnotateSet(sync.deployment, revision, true, changed);
  const int32_t min_ready = sync.deployment.spec().min_ready_seconds();
  if (changed.spec().min_ready_seconds() != min_ready) {
    if (min_ready) {
      changed.mutable_spec()->set_min_ready_seconds(min_ready);
    } else {
      changed.mutable_spec()->clear_min_ready_seconds();
    }
    update = true;
  }
  if (update) {
    KEELSON_ASSIGN_OR_RETURN(changed, sync.api.Update(changed));
    sync.new_set = std::make_shared<appsv1::ReplicaSet>(std::move(changed));
  }
  return NoteNewSet(sync, "FoundNewReplicaSet",
                    fmt::format("Found new replica set \"{}\"", sync.new_set->metadata().name()),
                    RevisionOf(sync.new_set->metadata()));
}

Result<> DeploymentController::NoteNewSet(Sync& sync, std::string_view reason, std::string message,
                                          int64_t revision) {
  std::string& stored = (*sync.deployment.mutable_metadata()->mutable_annotations())[kRevision];
  if (stored != std::to_string(revision)) {
    stored = std::to_string(revision);
    // An update of the status subresource leaves metadata.generation as it is.
    KEELSON_ASSIGN_OR_RETURN(sync.deployment, sync.api.UpdateStatus(sync.deployment));
  }
  if (!HasProgressDeadline(sync.deployment)) return {};
  const bool found = reason == "FoundNewReplicaSet";
  if (found && FindCondition(sync.deployment.status(), "Progressing")) return {};
  appsv1::DeploymentStatus status = sync.deployment.status();
  SetCondition(status, MakeCondition("Progressing", "True", reason, std::move(message), clock().Now()));
  return WriteStatus(sync, status);
}

Result<> DeploymentController::CreateNewSet(Sync& sync, int64_t revision) {
  const appsv1::DeploymentSpec& spec = sync.deployment.spec();
  const std::string hash = TemplateHash(spec.template_(), sync.deployment.status().collision_count());
  appsv1::ReplicaSet set;
  metav1::ObjectMeta& meta = *set.mutable_metadata();
  meta.set_name(sync.deployment.metadata().name() + "-" + hash);
  meta.set_namespace_(sync.deployment.metadata().namespace_());
  *meta.mutable_labels() = spec.template_().metadata().labels();
  (*meta.mutable_labels())[kPodTemplateHash] = hash;
  *meta.add_owner_references() = api::ControllerRef(sync.deployment);
  appsv1::ReplicaSetSpec& set_spec = *set.mutable_spec();
  if (spec.min_ready_seconds()) set_spec.set_min_ready_seconds(spec.min_ready_seconds());
  *set_spec.mutable_selector() = spec.selector();
  (*set_spec.mutable_selector()->mutable_match_labels())[kPodTemplateHash] = hash;
  *set_spec.mutable_template_() = spec.template_();
  (*set_spec.mutable_template_()->mutable_metadata()->mutable_labels())[kPodTemplateHash] = hash;
  set_spec.set_replicas(NewSetSize(sync.deployment, sync.old_sets, 0));
  AnnotateSet(sync.deployment, revision, false, set);

  Result<appsv1::ReplicaSet> created = sync.api.Create(set);
  if (!created) return CreationFailed(sync, set, created.error());
  sync.new_set = std::make_shared<appsv1::ReplicaSet>(*std::move(created));
  if (sync.new_set->spec().replicas() > 0) {
    events_.Record(sync.deployment, "Normal", "ScalingReplicaSet",
                   fmt::format("Scaled up replica set {} from 0 to {}", sync.new_set->metadata().name(),
                               sync.new_set->spec().replicas()));
  }
  return NoteNewSet(sync, "NewReplicaSetCreated",
                    fmt::format("Created new replica set \"{}\"", sync.new_set->metadata().name()), revision);
}

Result<> DeploymentController::CreationFailed(Sync& sync, const appsv1::ReplicaSet& wanted,
                                              const Error& error) {
  if (error.Is(Code::kAlreadyExists)) {
    const metav1::ObjectMeta& meta = wanted.metadata();
    KEELSON_ASSIGN_OR_RETURN(appsv1::ReplicaSet there,
                             sync.api.Get<appsv1::ReplicaSet>(meta.namespace_(), meta.name()));
    const metav1::OwnerReference* owner = api::ControllerOf(there.metadata());
    if (owner && owner->uid() == sync.deployment.metadata().uid() &&
        SameTemplate(there.spec().template_(), sync.deployment.spec().template_())) {
      // We created it a moment ago, and the store does not show it yet.
      sync.new_set = std::make_shared<appsv1::ReplicaSet>(std::move(there));
      return {};
    }
    // A hash collision with another template: the collision count salts the next hash.
    appsv1::DeploymentStatus status = sync.deployment.status();
    status.set_collision_count(status.collision_count() + 1);
    KEELSON_RETURN_IF_ERROR(WriteStatus(sync, status));
    return error;
  }
  if (IsNamespaceTerminating(error)) return {};
  std::string message =
      fmt::format("Failed to create new replica set \"{}\": {}", wanted.metadata().name(), error.message());
  if (HasProgressDeadline(sync.deployment)) {
    appsv1::DeploymentStatus status = sync.deployment.status();
    SetCondition(status,
                 MakeCondition("Progressing", "False", "ReplicaSetCreateError", message, clock().Now()));
    KEELSON_RETURN_IF_ERROR(WriteStatus(sync, status));
  }
  events_.Record(sync.deployment, "Warning", "ReplicaSetCreateError", std::move(message));
  return error;
}

}  // namespace keelson::controllers
