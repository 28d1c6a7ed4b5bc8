// Controllers of pods: apps, batch, replication controllers.
#include <limits>

#include "lib/api/proto/batch_v1.pb.h"
#include "lib/k8s/defaulting/table.h"
#include "lib/k8s/int_or_string.h"

namespace keelson::k8s {

namespace batchv1 = api::batch::v1;

namespace {

constexpr int32_t kHistory = 10;
constexpr int32_t kProgressSeconds = 600;

void DefaultTemplate(corev1::PodTemplateSpec& object) { DefaultPodSpec(*object.mutable_spec()); }

void DefaultDeployment(appsv1::Deployment& object) {
  appsv1::DeploymentSpec& spec = *object.mutable_spec();
  DefaultTemplate(*spec.mutable_template_());
  if (!spec.has_replicas()) spec.set_replicas(1);
  appsv1::DeploymentStrategy& strategy = *spec.mutable_strategy();
  if (strategy.type().empty()) strategy.set_type("RollingUpdate");
  if (strategy.type() == "RollingUpdate") {
    appsv1::RollingUpdateDeployment& rolling = *strategy.mutable_rolling_update();
    if (!rolling.has_max_unavailable()) *rolling.mutable_max_unavailable() = FromString("25%");
    if (!rolling.has_max_surge()) *rolling.mutable_max_surge() = FromString("25%");
  }
  if (!spec.has_revision_history_limit()) spec.set_revision_history_limit(kHistory);
  if (!spec.has_progress_deadline_seconds()) spec.set_progress_deadline_seconds(kProgressSeconds);
}

void DefaultReplicaSet(appsv1::ReplicaSet& object) {
  appsv1::ReplicaSetSpec& spec = *object.mutable_spec();
  DefaultTemplate(*spec.mutable_template_());
  if (!spec.has_replicas()) spec.set_replicas(1);
}

void DefaultDaemonSet(appsv1::DaemonSet& object) {
  appsv1::DaemonSetSpec& spec = *object.mutable_spec();
  DefaultTemplate(*spec.mutable_template_());
  appsv1::DaemonSetUpdateStrategy& strategy = *spec.mutable_update_strategy();
  if (strategy.type().empty()) strategy.set_type("RollingUpdate");
  if (strategy.type() == "RollingUpdate") {
    appsv1::RollingUpdateDaemonSet& rolling = *strategy.mutable_rolling_update();
    if (!rolling.has_max_unavailable()) *rolling.mutable_max_unavailable() = FromInt(1);
    if (!rolling.has_max_surge()) *rolling.mutable_max_surge() = FromInt(0);
  }
  if (!spec.has_revision_history_limit()) spec.set_revision_history_limit(kHistory);
}

void DefaultStatefulSet(appsv1::StatefulSet& object) {
  appsv1::StatefulSetSpec& spec = *object.mutable_spec();
  DefaultTemplate(*spec.mutable_template_());
  for (corev1::PersistentVolumeClaim& claim : *spec.mutable_volume_claim_templates()) DefaultClaim(claim);
  if (spec.pod_management_policy().empty()) spec.set_pod_management_policy("OrderedReady");
  appsv1::StatefulSetUpdateStrategy& strategy = *spec.mutable_update_strategy();
  if (strategy.type().empty()) {
    strategy.set_type("RollingUpdate");
    strategy.mutable_rolling_update();
  }
  if (strategy.type() == "RollingUpdate" && strategy.has_rolling_update() &&
      !strategy.rolling_update().has_partition()) {
    strategy.mutable_rolling_update()->set_partition(0);
  }
  appsv1::StatefulSetPersistentVolumeClaimRetentionPolicy& retention =
      *spec.mutable_persistent_volume_claim_retention_policy();
  if (retention.when_deleted().empty()) retention.set_when_deleted("Retain");
  if (retention.when_scaled().empty()) retention.set_when_scaled("Retain");
  if (!spec.has_replicas()) spec.set_replicas(1);
  if (!spec.has_revision_history_limit()) spec.set_revision_history_limit(kHistory);
}

void DefaultReplicationController(corev1::ReplicationController& object) {
  corev1::ReplicationControllerSpec& spec = *object.mutable_spec();
  if (spec.has_template_()) {
    DefaultTemplate(*spec.mutable_template_());
    const auto& labels = spec.template_().metadata().labels();
    if (spec.selector().empty()) *spec.mutable_selector() = labels;
    if (object.metadata().labels().empty() && !labels.empty()) {
      *object.mutable_metadata()->mutable_labels() = labels;
    }
  }
  if (!spec.has_replicas()) spec.set_replicas(1);
}

void DefaultJobSpec(batchv1::JobSpec& spec) {
  if (!spec.has_completions() && !spec.has_parallelism()) spec.set_completions(1);
  if (!spec.has_parallelism()) spec.set_parallelism(1);
  if (!spec.has_backoff_limit()) {
    spec.set_backoff_limit(spec.has_backoff_limit_per_index() ? std::numeric_limits<int32_t>::max() : 6);
  }
  if (!spec.has_completion_mode()) spec.set_completion_mode("NonIndexed");
  if (!spec.has_suspend()) spec.set_suspend(false);
  if (!spec.has_manual_selector()) spec.set_manual_selector(false);
  if (spec.has_pod_failure_policy()) {
    for (batchv1::PodFailurePolicyRule& rule : *spec.mutable_pod_failure_policy()->mutable_rules()) {
      for (auto& pattern : *rule.mutable_on_pod_conditions()) {
        if (pattern.status().empty()) pattern.set_status("True");
      }
    }
  }
  if (!spec.has_pod_replacement_policy()) {
    spec.set_pod_replacement_policy(spec.has_pod_failure_policy() ? "Failed" : "TerminatingOrFailed");
  }
}

void DefaultJob(batchv1::Job& object) {
  batchv1::JobSpec& spec = *object.mutable_spec();
  DefaultTemplate(*spec.mutable_template_());
  DefaultJobSpec(spec);
  const auto& labels = spec.template_().metadata().labels();
  if (object.metadata().labels().empty() && !labels.empty()) {
    *object.mutable_metadata()->mutable_labels() = labels;
  }
}

// The Job's own defaults are set when the Job is made from its template.
void DefaultCronJob(batchv1::CronJob& object) {
  batchv1::CronJobSpec& spec = *object.mutable_spec();
  DefaultTemplate(*spec.mutable_job_template()->mutable_spec()->mutable_template_());
  if (spec.concurrency_policy().empty()) spec.set_concurrency_policy("Allow");
  if (!spec.has_suspend()) spec.set_suspend(false);
  if (!spec.has_successful_jobs_history_limit()) spec.set_successful_jobs_history_limit(3);
  if (!spec.has_failed_jobs_history_limit()) spec.set_failed_jobs_history_limit(1);
}

}  // namespace

void RegisterWorkloadDefaults(DefaultTable& table) {
  table.Add<appsv1::Deployment, DefaultDeployment>();
  table.Add<appsv1::ReplicaSet, DefaultReplicaSet>();
  table.Add<appsv1::DaemonSet, DefaultDaemonSet>();
  table.Add<appsv1::StatefulSet, DefaultStatefulSet>();
  table.Add<corev1::ReplicationController, DefaultReplicationController>();
  table.Add<batchv1::Job, DefaultJob>();
  table.Add<batchv1::CronJob, DefaultCronJob>();
}

}  // namespace keelson::k8s
