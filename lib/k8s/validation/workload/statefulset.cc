// StatefulSets.
#include <fmt/format.h>

#include "lib/api/selector.h"
#include "lib/k8s/validation/rule_table.h"
#include "lib/k8s/validation/workload/internal.h"

namespace keelson::k8s {

namespace {

void CheckRolling(const appsv1::RollingUpdateStatefulSetStrategy& update, const Path& path,
                  FieldErrors& errors) {
  CheckNonNegative(update.partition(), path.Child("partition"), errors);
  if (!update.has_max_unavailable()) return;
  const Path field = path.Child("maxUnavailable");
  CheckIntOrPercent(update.max_unavailable(), field, errors);
  if (IsZero(update.max_unavailable())) {
    errors.push_back(InvalidIntOrString(field, update.max_unavailable(), "cannot be 0"));
  }
  CheckAtMostAll(update.max_unavailable(), field, errors);
}

void CheckStrategy(const appsv1::StatefulSetUpdateStrategy& strategy, const Path& path, FieldErrors& errors) {
  const Path rolling = path.Child("rollingUpdate");
  if (strategy.type().empty()) {
    errors.push_back(Required(path));
  } else if (strategy.type() == "OnDelete") {
    if (strategy.has_rolling_update()) {
      errors.push_back(InvalidObject(rolling, strategy.rolling_update(),
                                     "only allowed for updateStrategy 'RollingUpdate'"));
    }
  } else if (strategy.type() == "RollingUpdate") {
    if (strategy.has_rolling_update()) CheckRolling(strategy.rolling_update(), rolling, errors);
  } else {
    errors.push_back(InvalidObject(path, strategy, "must be 'RollingUpdate' or 'OnDelete'"));
  }
}

void CheckRetention(const appsv1::StatefulSetSpec& spec, const Path& path, FieldErrors& errors) {
  if (!spec.has_persistent_volume_claim_retention_policy()) return;
  const auto& policy = spec.persistent_volume_claim_retention_policy();
  const std::pair<std::string_view, const std::string*> fields[] = {{"whenDeleted", &policy.when_deleted()},
                                                                    {"whenScaled", &policy.when_scaled()}};
  for (const auto& [field, value] : fields) {
    if (*value != "Retain" && *value != "Delete") {
      errors.push_back(NotSupported(path.Child(field), *value, {"Retain", "Delete"}));
    }
  }
}

// Mounts may name volumes that come from the claim templates.
corev1::PodTemplateSpec WithClaimVolumes(const appsv1::StatefulSetSpec& spec) {
  corev1::PodTemplateSpec object = spec.template_();
  for (const corev1::PersistentVolumeClaim& claim : spec.volume_claim_templates()) {
    const std::string& name = claim.metadata().name();
    bool known = false;
    for (corev1::Volume& volume : *object.mutable_spec()->mutable_volumes()) {
      if (volume.name() != name) continue;
      known = true;
      volume.mutable_volume_source()->Clear();
      volume.mutable_volume_source()->mutable_persistent_volume_claim()->set_claim_name(name);
    }
    if (known) continue;
    corev1::Volume& volume = *object.mutable_spec()->add_volumes();
    volume.set_name(name);
    volume.mutable_volume_source()->mutable_persistent_volume_claim()->set_claim_name(name);
  }
  return object;
}

void CheckClaimTemplates(const appsv1::StatefulSetSpec& spec, const Path& path, FieldErrors& errors) {
  for (int i = 0; i < spec.volume_claim_templates_size(); ++i) {
    const Path item = path.Index(i);
    CheckClaimSpec(spec.volume_claim_templates(i).spec(), item.Child("spec"), errors);
  }
}

// Immutable fields are checked once. `with_template`: check the pods' template too.
void CheckSpec(const appsv1::StatefulSetSpec& spec, bool is_new, bool with_template, FieldErrors& errors) {
  const Path path("spec");
  const std::string& management = spec.pod_management_policy();
  if (management.empty()) {
    errors.push_back(Required(path.Child("podManagementPolicy")));
  } else if (management != "OrderedReady" && management != "Parallel") {
    errors.push_back(
        Invalid(path.Child("podManagementPolicy"), management, "must be 'OrderedReady' or 'Parallel'"));
  }
  CheckStrategy(spec.update_strategy(), path.Child("updateStrategy"), errors);
  CheckRetention(spec, path.Child("persistentVolumeClaimRetentionPolicy"), errors);
  if (is_new) CheckClaimTemplates(spec, path.Child("volumeClaimTemplates"), errors);
  CheckNonNegative(spec.replicas(), path.Child("replicas"), errors);
  CheckNonNegative(spec.min_ready_seconds(), path.Child("minReadySeconds"), errors);
  if (spec.has_ordinals()) CheckNonNegative(spec.ordinals().start(), path.Child("ordinals.start"), errors);
  if (is_new && !spec.service_name().empty()) {
    AddProblems(CheckDns1123Label(spec.service_name()), spec.service_name(), path.Child("serviceName"),
                errors);
  }
  CheckWorkloadSelector(spec.has_selector(), spec.selector(), "statefulset", path.Child("selector"), errors);
  const Path at = path.Child("template");
  if (!api::LabelSelector::From(spec.selector())) {
    errors.push_back(InvalidObject(path.Child("selector"), spec.selector(), ""));
  } else {
    CheckSelects(spec.has_selector(), spec.selector(), spec.template_(), at, errors);
    if (with_template) {
      CheckPodTemplate(spec.volume_claim_templates().empty() ? spec.template_() : WithClaimVolumes(spec), at,
                       errors);
    }
  }
  CheckRunsForever(spec.template_(), "StatefulSet", at, errors);
}

void CheckStatefulSet(const appsv1::StatefulSet& object, FieldErrors& errors) {
  CheckSpec(object.spec(), true, true, errors);
}

void CheckStatefulSetUpdate(const appsv1::StatefulSet& object, const appsv1::StatefulSet& old,
                            FieldErrors& errors) {
  // A stored template that new rules would refuse must not block other changes.
  FieldErrors stored;
  CheckSpec(old.spec(), false, true, stored);
  CheckSpec(object.spec(), false, stored.empty(), errors);
  appsv1::StatefulSetSpec now = object.spec(), before = old.spec();
  for (appsv1::StatefulSetSpec* spec : {&now, &before}) {
    spec->clear_replicas();
    spec->clear_template_();
    spec->clear_update_strategy();
    spec->clear_min_ready_seconds();
    spec->clear_ordinals();
    spec->clear_revision_history_limit();
    spec->clear_persistent_volume_claim_retention_policy();
  }
  if (SameMessage(now, before)) return;
  errors.push_back(
      Forbidden(Path("spec"),
                "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', "
                "'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and "
                "'minReadySeconds' are forbidden"));
}

void CheckStatefulSetStatus(const appsv1::StatefulSet& object, const appsv1::StatefulSet& old,
                            FieldErrors& errors) {
  const Path path("status");
  const appsv1::StatefulSetStatus& status = object.status();
  CheckCounters({{"replicas", status.replicas()},
                 {"readyReplicas", status.ready_replicas()},
                 {"currentReplicas", status.current_replicas()},
                 {"updatedReplicas", status.updated_replicas()},
                 {"availableReplicas", status.available_replicas()},
                 {"observedGeneration", status.observed_generation()},
                 {"collisionCount", status.collision_count()}},
                path, errors);
  CheckBelow({{"readyReplicas", status.ready_replicas()},
              {"currentReplicas", status.current_replicas()},
              {"updatedReplicas", status.updated_replicas()},
              {"availableReplicas", status.available_replicas()}},
             status.replicas(), "status.replicas", path, errors);
  CheckBelow({{"availableReplicas", status.available_replicas()}}, status.ready_replicas(),
             "status.readyReplicas", path, errors);
  CheckCollisions(status, old.status(), path, errors);
}

void CheckRevision(const appsv1::ControllerRevision& object, FieldErrors& errors) {
  if (!object.has_data()) errors.push_back(Required(Path("data"), "data is mandatory"));
  CheckNonNegative(object.revision(), Path("revision"), errors);
}

void CheckRevisionUpdate(const appsv1::ControllerRevision& object, const appsv1::ControllerRevision& old,
                         FieldErrors& errors) {
  CheckImmutable(object.data(), old.data(), Path("data"), errors);
}

}  // namespace

void RegisterStatefulSetRules(RuleTable& table) {
  // Pods are named after it, and their names become labels and hostnames.
  table.Add<appsv1::StatefulSet, CheckStatefulSet>().name = CheckDns1123Label;
  table.AddUpdate<appsv1::StatefulSet, CheckStatefulSetUpdate>(true);
  table.AddStatus<appsv1::StatefulSet, CheckStatefulSetStatus>();
  table.Add<appsv1::ControllerRevision, CheckRevision>();
  table.AddUpdate<appsv1::ControllerRevision, CheckRevisionUpdate>();
}

}  // namespace keelson::k8s
