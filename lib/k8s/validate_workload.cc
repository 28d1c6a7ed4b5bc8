// Controllers of pods: apps, batch, replication controllers.
#include <fmt/format.h>

#include "lib/api/proto/batch_v1.pb.h"
#include "lib/api/selector.h"
#include "lib/k8s/int_or_string.h"
#include "lib/k8s/rule_table.h"

namespace keelson::k8s {

namespace batchv1 = api::batch::v1;

namespace {

constexpr size_t kCronJobName = 52;  // leaves room for the time that names its jobs

void CheckRestartAlways(const corev1::PodTemplateSpec& object, const Path& path, FieldErrors& errors) {
  const std::string& policy = object.spec().restart_policy();
  const Path spec = path.Child("spec");
  if (policy != "Always") errors.push_back(NotSupported(spec.Child("restartPolicy"), policy, {"Always"}));
  if (object.spec().has_active_deadline_seconds()) {
    errors.push_back(Forbidden(spec.Child("activeDeadlineSeconds"),
                               "activeDeadlineSeconds in ReplicaSet is not Supported"));
  }
}

// A selector that is there, is not empty, and selects the template's pods.
void CheckSelected(bool has_selector, const metav1::LabelSelector& selector,
                   const corev1::PodTemplateSpec& object, std::string_view kind, const Path& path,
                   FieldErrors& errors) {
  const Path field = path.Child("selector");
  if (!has_selector) {
    errors.push_back(Required(field));
  } else {
    CheckLabelSelector(selector, field, errors);
    if (selector.match_labels().empty() && selector.match_expressions().empty()) {
      errors.push_back(InvalidObject(field, selector, fmt::format("empty selector is invalid for {}", kind)));
    }
  }
  const Path at = path.Child("template");
  const Result<api::LabelSelector> parsed = api::LabelSelector::From(selector);
  if (!parsed) {
    errors.push_back(InvalidObject(field, selector, "invalid label selector"));
  } else if (has_selector && !parsed->Matches(object.metadata().labels())) {
    const Path metadata = at.Child("metadata");
    errors.push_back(InvalidRaw(metadata.Child("labels"), PrintMap(object.metadata().labels()),
                                "`selector` does not match template `labels`"));
  }
  CheckPodTemplate(object, at, errors);
}

// Zero, as a number or a percentage.
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

void CheckRolling(const intstr::IntOrString& unavailable, const intstr::IntOrString& surge, const Path& path,
                  FieldErrors& errors) {
  CheckIntOrPercent(unavailable, path.Child("maxUnavailable"), errors);
  CheckIntOrPercent(surge, path.Child("maxSurge"), errors);
  CheckAtMostAll(unavailable, path.Child("maxUnavailable"), errors);
  if (IsZero(unavailable) && IsZero(surge)) {
    errors.push_back(
        InvalidIntOrString(path.Child("maxUnavailable"), unavailable, "may not be 0 when `maxSurge` is 0"));
  }
}

void CheckDeployment(const appsv1::Deployment& object, FieldErrors& errors) {
  const Path path("spec");
  const appsv1::DeploymentSpec& spec = object.spec();
  CheckNonNegative(spec.replicas(), path.Child("replicas"), errors);
  CheckSelected(spec.has_selector(), spec.selector(), spec.template_(), "deployment", path, errors);
  CheckRestartAlways(spec.template_(), path.Child("template"), errors);
  const Path strategy = path.Child("strategy");
  CheckEnum(spec.strategy().type(), {"Recreate", "RollingUpdate"}, strategy.Child("type"), errors);
  const Path rolling = strategy.Child("rollingUpdate");
  if (spec.strategy().type() == "Recreate" && spec.strategy().has_rolling_update()) {
    errors.push_back(Forbidden(rolling, "may not be specified when strategy `type` is 'Recreate'"));
  } else if (spec.strategy().type() == "RollingUpdate") {
    const appsv1::RollingUpdateDeployment& update = spec.strategy().rolling_update();
    CheckRolling(update.max_unavailable(), update.max_surge(), rolling, errors);
  }
  CheckNonNegative(spec.min_ready_seconds(), path.Child("minReadySeconds"), errors);
  if (spec.has_revision_history_limit()) {
    CheckNonNegative(spec.revision_history_limit(), path.Child("revisionHistoryLimit"), errors);
  }
  if (spec.has_progress_deadline_seconds()) {
    CheckNonNegative(spec.progress_deadline_seconds(), path.Child("progressDeadlineSeconds"), errors);
    if (spec.progress_deadline_seconds() <= spec.min_ready_seconds()) {
      errors.push_back(Invalid(path.Child("progressDeadlineSeconds"),
                               int64_t{spec.progress_deadline_seconds()},
                               "must be greater than minReadySeconds"));
    }
  }
}

void CheckReplicaSet(const appsv1::ReplicaSet& object, FieldErrors& errors) {
  const Path path("spec");
  const appsv1::ReplicaSetSpec& spec = object.spec();
  CheckNonNegative(spec.replicas(), path.Child("replicas"), errors);
  CheckNonNegative(spec.min_ready_seconds(), path.Child("minReadySeconds"), errors);
  CheckSelected(spec.has_selector(), spec.selector(), spec.template_(), "deployment", path, errors);
  CheckRestartAlways(spec.template_(), path.Child("template"), errors);
}

void CheckDaemonSet(const appsv1::DaemonSet& object, FieldErrors& errors) {
  const Path path("spec");
  const appsv1::DaemonSetSpec& spec = object.spec();
  CheckSelected(spec.has_selector(), spec.selector(), spec.template_(), "daemonset", path, errors);
  CheckRestartAlways(spec.template_(), path.Child("template"), errors);
  CheckNonNegative(spec.min_ready_seconds(), path.Child("minReadySeconds"), errors);
  const Path strategy = path.Child("updateStrategy");
  CheckEnum(spec.update_strategy().type(), {"RollingUpdate", "OnDelete"}, strategy.Child("type"), errors);
  if (spec.update_strategy().type() == "RollingUpdate") {
    const appsv1::RollingUpdateDaemonSet& update = spec.update_strategy().rolling_update();
    const Path rolling = strategy.Child("rollingUpdate");
    CheckRolling(update.max_unavailable(), update.max_surge(), rolling, errors);
    if (!IsZero(update.max_unavailable()) && !IsZero(update.max_surge())) {
      errors.push_back(InvalidIntOrString(rolling.Child("maxSurge"), update.max_surge(),
                                          "may not be set when maxUnavailable is non-zero"));
    }
  }
  if (spec.has_revision_history_limit()) {
    CheckNonNegative(spec.revision_history_limit(), path.Child("revisionHistoryLimit"), errors);
  }
}

void CheckStatefulSet(const appsv1::StatefulSet& object, FieldErrors& errors) {
  const Path path("spec");
  const appsv1::StatefulSetSpec& spec = object.spec();
  const std::string& management = spec.pod_management_policy();
  if (management.empty()) {
    errors.push_back(Required(path.Child("podManagementPolicy")));
  } else if (management != "OrderedReady" && management != "Parallel") {
    errors.push_back(
        Invalid(path.Child("podManagementPolicy"), management, "must be 'OrderedReady' or 'Parallel'"));
  }
  const Path strategy = path.Child("updateStrategy");
  const std::string& type = spec.update_strategy().type();
  if (type.empty()) {
    errors.push_back(Required(strategy));
  } else if (type != "RollingUpdate" && type != "OnDelete") {
    errors.push_back(
        InvalidObject(strategy, spec.update_strategy(), "must be 'RollingUpdate' or 'OnDelete'"));
  } else if (type == "OnDelete" && spec.update_strategy().has_rolling_update()) {
    errors.push_back(
        Invalid(strategy.Child("rollingUpdate"), "", "only allowed for updateStrategy 'RollingUpdate'"));
  }
  const Path rolling = strategy.Child("rollingUpdate");
  CheckNonNegative(spec.update_strategy().rolling_update().partition(), rolling.Child("partition"), errors);
  CheckNonNegative(spec.replicas(), path.Child("replicas"), errors);
  CheckNonNegative(spec.min_ready_seconds(), path.Child("minReadySeconds"), errors);
  if (!spec.service_name().empty()) {
    AddProblems(CheckDns1123Subdomain(spec.service_name()), spec.service_name(), path.Child("serviceName"),
                errors);
  }
  CheckSelected(spec.has_selector(), spec.selector(), spec.template_(), "statefulset", path, errors);
  CheckRestartAlways(spec.template_(), path.Child("template"), errors);
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
  const auto& labels = spec.template_().metadata().labels();
  if (!spec.selector().empty() && !api::LabelSelector::FromMap(spec.selector()).Matches(labels)) {
    const Path metadata = at.Child("metadata");
    errors.push_back(InvalidRaw(metadata.Child("labels"), PrintMap(labels),
                                "`selector` does not match template `labels`"));
  }
  CheckPodTemplate(spec.template_(), at, errors);
  CheckRestartAlways(spec.template_(), at, errors);
}

void CheckJobSpec(const batchv1::JobSpec& spec, const Path& path, FieldErrors& errors) {
  CheckNonNegative(spec.parallelism(), path.Child("parallelism"), errors);
  CheckNonNegative(spec.completions(), path.Child("completions"), errors);
  CheckNonNegative(spec.active_deadline_seconds(), path.Child("activeDeadlineSeconds"), errors);
  CheckNonNegative(spec.backoff_limit(), path.Child("backoffLimit"), errors);
  CheckNonNegative(spec.ttl_seconds_after_finished(), path.Child("ttlSecondsAfterFinished"), errors);
  if (spec.has_completion_mode()) {
    CheckEnum(spec.completion_mode(), {"NonIndexed", "Indexed"}, path.Child("completionMode"), errors);
    if (spec.completion_mode() == "Indexed" && !spec.has_completions()) {
      errors.push_back(Required(path.Child("completions"), "when completion mode is Indexed"));
    }
  }
  const Path at = path.Child("template");
  CheckPodTemplate(spec.template_(), at, errors);
  const std::string& policy = spec.template_().spec().restart_policy();
  const Path pod = at.Child("spec");
  if (policy == "Always") {
    errors.push_back(Required(pod.Child("restartPolicy"), "valid values: \"OnFailure\", \"Never\""));
  } else {
    CheckEnum(policy, {"OnFailure", "Never"}, pod.Child("restartPolicy"), errors);
  }
  if (spec.has_selector()) CheckLabelSelector(spec.selector(), path.Child("selector"), errors);
}

void CheckJob(const batchv1::Job& object, FieldErrors& errors) {
  CheckJobSpec(object.spec(), Path("spec"), errors);
}

void CheckCronJob(const batchv1::CronJob& object, FieldErrors& errors) {
  const Path path("spec");
  const batchv1::CronJobSpec& spec = object.spec();
  if (spec.schedule().empty()) errors.push_back(Required(path.Child("schedule")));
  CheckEnum(spec.concurrency_policy(), {"Allow", "Forbid", "Replace"}, path.Child("concurrencyPolicy"),
            errors);
  CheckNonNegative(spec.starting_deadline_seconds(), path.Child("startingDeadlineSeconds"), errors);
  CheckNonNegative(spec.successful_jobs_history_limit(), path.Child("successfulJobsHistoryLimit"), errors);
  CheckNonNegative(spec.failed_jobs_history_limit(), path.Child("failedJobsHistoryLimit"), errors);
  const Path job = path.Child("jobTemplate");
  CheckJobSpec(spec.job_template().spec(), job.Child("spec"), errors);
  if (object.metadata().name().size() > kCronJobName) {
    const Path metadata("metadata");
    errors.push_back(
        Invalid(metadata.Child("name"), object.metadata().name(), "must be no more than 52 characters"));
  }
}

template <typename T>
void CheckSameSelector(const T& object, const T& old, FieldErrors& errors) {
  const Path path("spec");
  CheckImmutable(object.spec().selector(), old.spec().selector(), path.Child("selector"), errors);
}

void CheckStatefulSetUpdate(const appsv1::StatefulSet& object, const appsv1::StatefulSet& old,
                            FieldErrors& errors) {
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

void CheckJobUpdate(const batchv1::Job& object, const batchv1::Job& old, FieldErrors& errors) {
  const Path path("spec");
  CheckImmutable(object.spec().selector(), old.spec().selector(), path.Child("selector"), errors);
  // A suspended job that has not started may still get scheduling directives.
  if (!old.spec().suspend() || old.status().has_start_time()) {
    CheckImmutable(object.spec().template_(), old.spec().template_(), path.Child("template"), errors);
  }
  CheckImmutable(object.spec().completion_mode(), old.spec().completion_mode(), path.Child("completionMode"),
                 errors);
  const bool elastic = object.spec().completion_mode() == "Indexed" &&
                       object.spec().completions() == object.spec().parallelism();
  if (!elastic && object.spec().completions() != old.spec().completions()) {
    errors.push_back(Invalid(path.Child("completions"), int64_t{object.spec().completions()}, kImmutable));
  }
}

}  // namespace

void RegisterWorkloadRules(RuleTable& table) {
  table.Add<appsv1::Deployment, CheckDeployment>();
  table.AddUpdate<appsv1::Deployment, CheckSameSelector<appsv1::Deployment>>();
  table.Add<appsv1::ReplicaSet, CheckReplicaSet>();
  table.AddUpdate<appsv1::ReplicaSet, CheckSameSelector<appsv1::ReplicaSet>>();
  table.Add<appsv1::DaemonSet, CheckDaemonSet>();
  table.AddUpdate<appsv1::DaemonSet, CheckSameSelector<appsv1::DaemonSet>>();
  table.Add<appsv1::StatefulSet, CheckStatefulSet>();
  table.AddUpdate<appsv1::StatefulSet, CheckStatefulSetUpdate>();
  table.Add<corev1::ReplicationController, CheckReplicationController>();
  table.Add<batchv1::Job, CheckJob>();
  table.AddUpdate<batchv1::Job, CheckJobUpdate>();
  table.Add<batchv1::CronJob, CheckCronJob>();
}

}  // namespace keelson::k8s
