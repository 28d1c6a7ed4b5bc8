// Converts ReplicationControllers to ReplicaSets: only the selector differs (a plain map).
#include "controlplane/controllers/replicaset/controller.h"

namespace keelson::controllers {

appsv1::ReplicaSet ReplicationControllerKind::AsSet(const Object& object) {
  appsv1::ReplicaSet set;
  *set.mutable_metadata() = object.metadata();
  appsv1::ReplicaSetSpec& spec = *set.mutable_spec();
  spec.set_replicas(object.spec().replicas());
  if (object.spec().min_ready_seconds()) spec.set_min_ready_seconds(object.spec().min_ready_seconds());
  *spec.mutable_selector()->mutable_match_labels() = object.spec().selector();
  *spec.mutable_template_() = object.spec().template_();
  appsv1::ReplicaSetStatus& status = *set.mutable_status();
  const corev1::ReplicationControllerStatus& from = object.status();
  if (from.observed_generation()) status.set_observed_generation(from.observed_generation());
  for (const corev1::ReplicationControllerCondition& condition : from.conditions()) {
    appsv1::ReplicaSetCondition& to = *status.add_conditions();
    to.set_type(condition.type());
    to.set_status(condition.status());
    if (condition.has_last_transition_time()) {
      *to.mutable_last_transition_time() = condition.last_transition_time();
    }
    to.set_reason(condition.reason());
    to.set_message(condition.message());
  }
  return set;
}

void ReplicationControllerKind::SetStatus(const appsv1::ReplicaSetStatus& status, Object& object) {
  corev1::ReplicationControllerStatus to;
  if (status.replicas()) to.set_replicas(status.replicas());
  if (status.fully_labeled_replicas()) to.set_fully_labeled_replicas(status.fully_labeled_replicas());
  if (status.ready_replicas()) to.set_ready_replicas(status.ready_replicas());
  if (status.available_replicas()) to.set_available_replicas(status.available_replicas());
  if (status.observed_generation()) to.set_observed_generation(status.observed_generation());
  for (const appsv1::ReplicaSetCondition& condition : status.conditions()) {
    corev1::ReplicationControllerCondition& added = *to.add_conditions();
    added.set_type(condition.type());
    added.set_status(condition.status());
    if (condition.has_last_transition_time()) {
      *added.mutable_last_transition_time() = condition.last_transition_time();
    }
    added.set_reason(condition.reason());
    added.set_message(condition.message());
  }
  *object.mutable_status() = std::move(to);
}

}  // namespace keelson::controllers
