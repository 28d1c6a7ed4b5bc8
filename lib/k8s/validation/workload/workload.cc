// Controllers of identical pods: Deployments, ReplicaSets, DaemonSets, ReplicationControllers.
#include "lib/k8s/validation/workload/internal.h"

#include <algorithm>

#include <fmt/format.h>

#include "lib/api/selector.h"
#include "lib/k8s/validation/rule_table.h"

namespace keelson::k8s {

namespace {

// Template rules of Deployments and ReplicaSets.
void CheckReplicatedTemplate(bool has_selector, const metav1::LabelSelector& selector,
                             const corev1::PodTemplateSpec& object, const Path& spec, FieldErrors& errors) {
  const Path path = spec.Child("template");
  const Result<api::LabelSelector> parsed = api::LabelSelector::From(selector);
  if (has_selector && !parsed) {
    errors.push_back(InvalidObject(spec.Child("selector"), selector, "invalid label selector"));
    return;
  }
  CheckSelects(has_selector, selector, object, path, errors);
  CheckPodTemplate(object, path, errors);
  CheckRunsForever(object, "ReplicaSet", path, errors);
}

void CheckRollingDeployment(const appsv1::RollingUpdateDeployment& update, const Path& path,
                            FieldErrors& errors) {
  CheckIntOrPercent(update.max_unavailable(), path.Child("maxUnavailable"), errors);
  CheckIntOrPercent(update.max_surge(), path.Child("maxSurge"), errors);
  if (IsZero(update.max_unavailable()) && IsZero(update.max_surge())) {
    errors.push_back(InvalidIntOrString(path.Child("maxUnavailable"), update.max_unavailable(),
                                        "may not be 0 when `maxSurge` is 0"));
  }
  CheckAtMostAll(update.max_unavailable(), path.Child("maxUnavailable"), errors);
}

void CheckDeploymentStrategy(const appsv1::DeploymentStrategy& strategy, const Path& path,
                             FieldErrors& errors) {
  const Path rolling = path.Child("rollingUpdate");
  if (strategy.type() == "Recreate") {
    if (strategy.has_rolling_update()) {
      errors.push_back(Forbidden(rolling, "may not be specified when strategy `type` is 'Recreate'"));
    }
  } else if (strategy.type() == "RollingUpdate") {
    CheckRollingDeployment(strategy.rolling_update(), rolling, errors);
  } else {
    errors.push_back({FieldError::Type::kNotSupported, path.ToString(),
                      InvalidObject(path, strategy, "").value,
                      "supported values: \"Recreate\", \"RollingUpdate\""});
  }
}

void CheckDeployment(const appsv1::Deployment& object, FieldErrors& errors) {
  const Path path("spec");
  const appsv1::DeploymentSpec& spec = object.spec();
  CheckNonNegative(spec.replicas(), path.Child("replicas"), errors);
  CheckWorkloadSelector(spec.has_selector(), spec.selector(), "deployment", path.Child("selector"), errors);
  CheckReplicatedTemplate(spec.has_selector(), spec.selector(), spec.template_(), path, errors);
  CheckDeploymentStrategy(spec.strategy(), path.Child("strategy"), errors);
  CheckNonNegative(spec.min_ready_seconds(), path.Child("minReadySeconds"), errors);
  CheckNonNegative(spec.revision_history_limit(), path.Child("revisionHistoryLimit"), errors);
  if (!spec.has_progress_deadline_seconds()) return;
  const Path deadline = path.Child("progressDeadlineSeconds");
  CheckNonNegative(spec.progress_deadline_seconds(), deadline, errors);
  if (spec.progress_deadline_seconds() <= spec.min_ready_seconds()) {
    errors.push_back(
        Invalid(deadline, int64_t{spec.progress_deadline_seconds()}, "must be greater than minReadySeconds"));
  }
}

void CheckDeploymentStatus(const appsv1::Deployment& object, const appsv1::Deployment& old,
                           FieldErrors& errors) {
  const Path path("status");
  const appsv1::DeploymentStatus& status = object.status();
  CheckCounters({{"observedGeneration", status.observed_generation()},
                 {"replicas", status.replicas()},
                 {"updatedReplicas", status.updated_replicas()},
                 {"readyReplicas", status.ready_replicas()},
                 {"availableReplicas", status.available_replicas()},
                 {"unavailableReplicas", status.unavailable_replicas()},
                 {"terminatingReplicas", status.terminating_replicas()},
                 {"collisionCount", status.collision_count()}},
                path, errors);
  CheckBelow({{"updatedReplicas", status.updated_replicas()},
              {"readyReplicas", status.ready_replicas()},
              {"availableReplicas", status.available_replicas()}},
             status.replicas(), "status.replicas", path, errors);
  CheckBelow({{"availableReplicas", status.available_replicas()}}, status.ready_replicas(), "readyReplicas",
             path, errors);
  CheckCollisions(status, old.status(), path, errors);
}

void CheckReplicaSet(const appsv1::ReplicaSet& object, FieldErrors& errors) {
  const Path path("spec");
  const appsv1::ReplicaSetSpec& spec = object.spec();
  CheckNonNegative(spec.replicas(), path.Child("replicas"), errors);
  CheckNonNegative(spec.min_ready_seconds(), path.Child("minReadySeconds"), errors);
  // Upstream's message says "deployment" here too.
  CheckWorkloadSelector(spec.has_selector(), spec.selector(), "deployment", path.Child("selector"), errors);
  CheckReplicatedTemplate(spec.has_selector(), spec.selector(), spec.template_(), path, errors);
}

template <typename Status>
void CheckReplicaStatus(const Status& status, const Path& path, FieldErrors& errors) {
  CheckCounters({{"replicas", status.replicas()},
                 {"fullyLabeledReplicas", status.fully_labeled_replicas()},
                 {"readyReplicas", status.ready_replicas()},
                 {"availableReplicas", status.available_replicas()},
                 {"observedGeneration", status.observed_generation()}},
                path, errors);
  CheckBelow({{"fullyLabeledReplicas", status.fully_labeled_replicas()},
              {"readyReplicas", status.ready_replicas()},
              {"availableReplicas", status.available_replicas()}},
             status.replicas(), "status.replicas", path, errors);
  CheckBelow({{"availableReplicas", status.available_replicas()}}, status.ready_replicas(), "readyReplicas",
             path, errors);
}

void CheckReplicaSetStatus(const appsv1::ReplicaSet& object, const appsv1::ReplicaSet&, FieldErrors& errors) {
  const Path path("status");
  CheckReplicaStatus(object.status(), path, errors);
  CheckCounters({{"terminatingReplicas", object.status().terminating_replicas()}}, path, errors);
}

void CheckControllerStatus(const corev1::ReplicationController& object, const corev1::ReplicationController&,
                           FieldErrors& errors) {
  CheckReplicaStatus(object.status(), Path("status"), errors);
}

void CheckRollingDaemonSet(const appsv1::RollingUpdateDaemonSet& update, const Path& path,
                           FieldErrors& errors) {
  const Path unavailable = path.Child("maxUnavailable"), surge = path.Child("maxSurge");
  CheckIntOrPercent(update.max_unavailable(), unavailable, errors);
  CheckIntOrPercent(update.max_surge(), surge, errors);
  CheckAtMostAll(update.max_unavailable(), unavailable, errors);
  CheckAtMostAll(update.max_surge(), surge, errors);
  const bool may_miss = !IsZero(update.max_unavailable()), may_exceed = !IsZero(update.max_surge());
  if (may_miss && may_exceed) {
    errors.push_back(
        InvalidIntOrString(surge, update.max_surge(), "may not be set when maxUnavailable is non-zero"));
  } else if (!may_miss && !may_exceed) {
    errors.push_back(Required(unavailable, "cannot be 0 when maxSurge is 0"));
  }
}

void CheckDaemonSet(const appsv1::DaemonSet& object, FieldErrors& errors) {
  const Path path("spec");
  const appsv1::DaemonSetSpec& spec = object.spec();
  const Path at = path.Child("template"), selector = path.Child("selector");
  CheckLabelSelector(spec.selector(), selector, errors);
  CheckSelects(spec.has_selector(), spec.selector(), spec.template_(), at, errors);
  if (spec.has_selector() && spec.selector().match_labels().empty() &&
      spec.selector().match_expressions().empty()) {
    errors.push_back(InvalidObject(selector, spec.selector(), "empty selector is invalid for daemonset"));
  }
  CheckPodTemplate(spec.template_(), at, errors);
  CheckRunsForever(spec.template_(), "DaemonSet", at, errors);
  CheckNonNegative(spec.min_ready_seconds(), path.Child("minReadySeconds"), errors);
  const Path strategy = path.Child("updateStrategy");
  const std::string& type = spec.update_strategy().type();
  if (type == "RollingUpdate") {
    CheckRollingDaemonSet(spec.update_strategy().rolling_update(), strategy.Child("rollingUpdate"), errors);
  } else if (type != "OnDelete") {
    errors.push_back({FieldError::Type::kNotSupported, strategy.ToString(),
                      InvalidObject(strategy, spec.update_strategy(), "").value,
                      "supported values: \"RollingUpdate\", \"OnDelete\""});
  }
  CheckNonNegative(spec.revision_history_limit(), path.Child("revisionHistoryLimit"), errors);
}

void CheckDaemonSetStatus(const appsv1::DaemonSet& object, const appsv1::DaemonSet& old,
                          FieldErrors& errors) {
  const Path path("status");
  const appsv1::DaemonSetStatus& status = object.status();
  CheckCounters({{"currentNumberScheduled", status.current_number_scheduled()},
                 {"numberMisscheduled", status.number_misscheduled()},
                 {"desiredNumberScheduled", status.desired_number_scheduled()},
                 {"numberReady", status.number_ready()},
                 {"observedGeneration", status.observed_generation()},
                 {"updatedNumberScheduled", status.updated_number_scheduled()},
                 {"numberAvailable", status.number_available()},
                 {"numberUnavailable", status.number_unavailable()},
                 {"collisionCount", status.collision_count()}},
                path, errors);
  CheckCollisions(status, old.status(), path, errors);
}

void CheckReplicationController(const corev1::ReplicationController& object, FieldErrors& errors) {
  const Path path("spec");
  const corev1::ReplicationControllerSpec& spec = object.spec();
  CheckNonNegative(spec.min_ready_seconds(), path.Child("minReadySeconds"), errors);
  if (spec.selector().empty()) errors.push_back(Required(path.Child("selector")));
  CheckNonNegative(spec.replicas(), path.Child("replicas"), errors);
  const Path at = path.Child("template");
  if (!spec.has_template_()) {
    errors.push_back(Required(at));
    return;
  }
  // Compared as plain strings: values that are no valid labels match nothing.
  const StringMap& labels = spec.template_().metadata().labels();
  const bool selects = std::all_of(spec.selector().begin(), spec.selector().end(), [&](const auto& wanted) {
    const auto label = labels.find(wanted.first);
    return label != labels.end() && label->second == wanted.second;
  });
  if (!selects) {
    errors.push_back(InvalidRaw(at.Child("metadata").Child("labels"), PrintMap(labels),
                                "`selector` does not match template `labels`"));
  }
  CheckPodTemplate(spec.template_(), at, errors);
  CheckRunsForever(spec.template_(), "ReplicationController", at, errors);
}

template <typename T>
void CheckSameSelector(const T& object, const T& old, FieldErrors& errors) {
  CheckImmutable(object.spec().selector(), old.spec().selector(), Path("spec").Child("selector"), errors);
}

}  // namespace

void CheckRunsForever(const corev1::PodTemplateSpec& object, std::string_view kind, const Path& path,
                      FieldErrors& errors) {
  const Path spec = path.Child("spec");
  const std::string& policy = object.spec().restart_policy();
  if (policy != "Always") errors.push_back(NotSupported(spec.Child("restartPolicy"), policy, {"Always"}));
  if (object.spec().has_active_deadline_seconds()) {
    errors.push_back(Forbidden(spec.Child("activeDeadlineSeconds"),
                               fmt::format("activeDeadlineSeconds in {} is not Supported", kind)));
  }
}

void CheckWorkloadSelector(bool present, const metav1::LabelSelector& selector, std::string_view kind,
                           const Path& path, FieldErrors& errors) {
  if (!present) {
    errors.push_back(Required(path));
    return;
  }
  CheckLabelSelector(selector, path, errors);
  if (selector.match_labels().empty() && selector.match_expressions().empty()) {
    errors.push_back(InvalidObject(path, selector, fmt::format("empty selector is invalid for {}", kind)));
  }
}

void CheckSelects(bool present, const metav1::LabelSelector& selector, const corev1::PodTemplateSpec& object,
                  const Path& path, FieldErrors& errors) {
  const Result<api::LabelSelector> parsed = api::LabelSelector::From(selector);
  if (!parsed || (present && parsed->Matches(object.metadata().labels()))) return;
  errors.push_back(InvalidRaw(path.Child("metadata").Child("labels"), PrintMap(object.metadata().labels()),
                              "`selector` does not match template `labels`"));
}

bool IsZero(const intstr::IntOrString& value) {
  const Result<int64_t> scaled = ScaledValue(value, 100, true);
  return scaled && *scaled == 0;
}

void CheckAtMostAll(const intstr::IntOrString& value, const Path& path, FieldErrors& errors) {
  const Result<int64_t> scaled = ScaledValue(value, 100, true);
  if (!IsString(value) || !scaled || *scaled <= 100) return;
  errors.push_back(Invalid(path, value.str_val(), "must not be greater than 100%"));
}

FieldError InvalidIntOrString(const Path& path, const intstr::IntOrString& value, std::string_view detail) {
  return IsString(value) ? Invalid(path, value.str_val(), detail)
                         : Invalid(path, int64_t{value.int_val()}, detail);
}

void CheckCounters(std::initializer_list<Counter> counters, const Path& path, FieldErrors& errors) {
  for (const Counter& one : counters) CheckNonNegative(one.value, path.Child(one.field), errors);
}

void CheckBelow(std::initializer_list<Counter> counters, int64_t limit, std::string_view name,
                const Path& path, FieldErrors& errors) {
  for (const Counter& one : counters) {
    if (one.value <= limit) continue;
    errors.push_back(
        Invalid(path.Child(one.field), one.value, fmt::format("cannot be greater than {}", name)));
  }
}

void RegisterWorkloadRules(RuleTable& table) {
  table.Add<appsv1::Deployment, CheckDeployment>();
  table.AddUpdate<appsv1::Deployment, CheckSameSelector<appsv1::Deployment>>();
  table.AddStatus<appsv1::Deployment, CheckDeploymentStatus>();
  table.Add<appsv1::ReplicaSet, CheckReplicaSet>();
  table.AddUpdate<appsv1::ReplicaSet, CheckSameSelector<appsv1::ReplicaSet>>();
  table.AddStatus<appsv1::ReplicaSet, CheckReplicaSetStatus>();
  table.Add<appsv1::DaemonSet, CheckDaemonSet>();
  table.AddUpdate<appsv1::DaemonSet, CheckSameSelector<appsv1::DaemonSet>>();
  table.AddStatus<appsv1::DaemonSet, CheckDaemonSetStatus>();
  table.Add<corev1::ReplicationController, CheckReplicationController>();
  table.AddStatus<corev1::ReplicationController, CheckControllerStatus>();
}

}  // namespace keelson::k8s
