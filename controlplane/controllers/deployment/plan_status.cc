// The status of a deployment.
#include <algorithm>
#include <climits>

#include "controlplane/controllers/deployment/plan.h"
#include "lib/api/meta.h"

namespace keelson::controllers {
namespace {

constexpr char kProgressing[] = "Progressing";
constexpr char kNewSetAvailable[] = "NewReplicaSetAvailable";
constexpr char kTimedOut[] = "ProgressDeadlineExceeded";

bool IsProgressing(const appsv1::Deployment& deployment, const appsv1::DeploymentStatus& now) {
  const appsv1::DeploymentStatus& before = deployment.status();
  const int32_t old_before = before.replicas() - before.updated_replicas();
  const int32_t old_now = now.replicas() - now.updated_replicas();
  return now.updated_replicas() > before.updated_replicas() || old_now < old_before ||
         now.ready_replicas() > before.ready_replicas() ||
         now.available_replicas() > before.available_replicas();
}

bool HasTimedOut(const appsv1::Deployment& deployment, const appsv1::DeploymentStatus& status, WallTime now) {
  const appsv1::DeploymentCondition* condition = FindCondition(status, kProgressing);
  if (!HasProgressDeadline(deployment) || !condition || condition->reason() == kNewSetAvailable) return false;
  if (condition->reason() == kTimedOut) return true;
  auto deadline = api::FromTime(condition->last_update_time()) +
                  std::chrono::seconds(deployment.spec().progress_deadline_seconds());
  return deadline < now;
}

std::string Subject(const appsv1::Deployment& deployment, const SetPointer& new_set) {
  return new_set ? "ReplicaSet \"" + new_set->metadata().name() + "\""
                 : "Deployment \"" + deployment.metadata().name() + "\"";
}

void SetProgress(const appsv1::Deployment& deployment, const SetPointer& new_set, WallTime now,
                 appsv1::DeploymentStatus& status) {
  const std::string subject = Subject(deployment, new_set);
  if (IsComplete(deployment, status)) {
    SetCondition(status, MakeCondition(kProgressing, "True", kNewSetAvailable,
                                       subject + " has successfully progressed.", now));
  } else if (IsProgressing(deployment, status)) {
    appsv1::DeploymentCondition condition =
        MakeCondition(kProgressing, "True", "ReplicaSetUpdated", subject + " is progressing.", now);
    // Every step restarts the deadline, so lastUpdateTime changes even if the reason does not.
    if (const auto* before = FindCondition(status, kProgressing)) {
      if (before->status() == "True") {
        *condition.mutable_last_transition_time() = before->last_transition_time();
      }
      RemoveCondition(status, kProgressing);
    }
    SetCondition(status, std::move(condition));
  } else if (HasTimedOut(deployment, status, now)) {
    SetCondition(status, MakeCondition(kProgressing, "False", kTimedOut,
                                       subject + " has timed out progressing.", now));
  }
}

// The ReplicaFailure condition of a ReplicaSet, the new one first, becomes the Deployment's.
void SetReplicaFailure(const SetPointer& new_set, const SetPointers& sets, appsv1::DeploymentStatus& status) {
  SetPointers order = Without(sets, new_set);
  if (new_set) order.insert(order.begin(), new_set);
  for (const SetPointer& set : order) {
    for (const auto& failure : set->status().conditions()) {
      if (failure.type() != "ReplicaFailure") continue;
      appsv1::DeploymentCondition condition;
      condition.set_type("ReplicaFailure");
      condition.set_status(failure.status());
      condition.set_reason(failure.reason());
      condition.set_message(failure.message());
      *condition.mutable_last_transition_time() = failure.last_transition_time();
      *condition.mutable_last_update_time() = failure.last_transition_time();
      SetCondition(status, std::move(condition));
      return;
    }
  }
  RemoveCondition(status, "ReplicaFailure");
}

}  // namespace

bool HasProgressDeadline(const appsv1::Deployment& deployment) {
  return deployment.spec().has_progress_deadline_seconds() &&
         deployment.spec().progress_deadline_seconds() != INT32_MAX;
}

bool IsComplete(const appsv1::Deployment& deployment, const appsv1::DeploymentStatus& status) {
  const int32_t wanted = deployment.spec().replicas();
  return status.updated_replicas() == wanted && status.replicas() == wanted &&
         status.available_replicas() == wanted &&
         status.observed_generation() >= deployment.metadata().generation();
}

const appsv1::DeploymentCondition* FindCondition(const appsv1::DeploymentStatus& status,
                                                 std::string_view type) {
  for (const auto& condition : status.conditions()) {
    if (condition.type() == type) return &condition;
  }
  return nullptr;
}

appsv1::DeploymentCondition MakeCondition(std::string_view type, std::string_view status,
                                          std::string_view reason, std::string message, WallTime now) {
  appsv1::DeploymentCondition condition;
  condition.set_type(std::string(type));
  condition.set_status(std::string(status));
  condition.set_reason(std::string(reason));
  condition.set_message(std::move(message));
  *condition.mutable_last_update_time() = api::ToTime(now);
  *condition.mutable_last_transition_time() = api::ToTime(now);
  return condition;
}

void SetCondition(appsv1::DeploymentStatus& status, appsv1::DeploymentCondition condition) {
  if (const auto* before = FindCondition(status, condition.type())) {
    if (before->status() == condition.status() && before->reason() == condition.reason()) return;
    if (before->status() == condition.status()) {
      *condition.mutable_last_transition_time() = before->last_transition_time();
    }
    RemoveCondition(status, condition.type());
  }
  *status.add_conditions() = std::move(condition);
}

void RemoveCondition(appsv1::DeploymentStatus& status, std::string_view type) {
  auto& conditions = *status.mutable_conditions();
  conditions.erase(std::remove_if(conditions.begin(), conditions.end(),
                                  [&](const auto& condition) { return condition.type() == type; }),
                   conditions.end());
}

appsv1::DeploymentStatus CountStatus(const appsv1::Deployment& deployment, const SetPointer& new_set,
                                     const SetPointers& sets, WallTime now) {
  const int32_t available = SumAvailable(sets);
  int32_t ready = 0, terminating = 0;
  bool knows_terminating = true;
  for (const SetPointer& set : sets) {
    ready += set->status().ready_replicas();
    terminating += set->status().terminating_replicas();
    knows_terminating = knows_terminating && set->status().has_terminating_replicas();
  }
  // A zero value-form field is stored as absent.
  appsv1::DeploymentStatus status;
  status.set_observed_generation(deployment.metadata().generation());
  if (int32_t n = SumStatus(sets)) status.set_replicas(n);
  if (int32_t n = new_set ? new_set->status().replicas() : 0) status.set_updated_replicas(n);
  if (ready) status.set_ready_replicas(ready);
  if (available) status.set_available_replicas(available);
  if (int32_t n = std::max(SumSpec(sets) - available, 0)) status.set_unavailable_replicas(n);
  if (knows_terminating) status.set_terminating_replicas(terminating);
  if (deployment.status().has_collision_count()) {
    status.set_collision_count(deployment.status().collision_count());
  }
  *status.mutable_conditions() = deployment.status().conditions();
  if (available >= deployment.spec().replicas() - LimitsOf(deployment).unavailable) {
    SetCondition(status, MakeCondition("Available", "True", "MinimumReplicasAvailable",
                                       "Deployment has minimum availability.", now));
  } else {
    SetCondition(status, MakeCondition("Available", "False", "MinimumReplicasUnavailable",
                                       "Deployment does not have minimum availability.", now));
  }
  return status;
}

appsv1::DeploymentStatus RolloutStatus(const appsv1::Deployment& deployment, const SetPointer& new_set,
                                       const SetPointers& sets, WallTime now) {
  appsv1::DeploymentStatus status = CountStatus(deployment, new_set, sets, now);
  if (!HasProgressDeadline(deployment)) {
    RemoveCondition(status, kProgressing);
  } else {
    // A completed rollout stays complete when pods come and go.
    const auto* before = FindCondition(deployment.status(), kProgressing);
    const bool over =
        status.replicas() == status.updated_replicas() && before && before->reason() == kNewSetAvailable;
    if (!over) SetProgress(deployment, new_set, now, status);
  }
  SetReplicaFailure(new_set, sets, status);
  return status;
}

std::optional<std::chrono::nanoseconds> StuckCheckAfter(const appsv1::Deployment& deployment,
                                                        const appsv1::DeploymentStatus& status,
                                                        WallTime now) {
  const auto* condition = FindCondition(status, kProgressing);
  if (!HasProgressDeadline(deployment) || !condition) return std::nullopt;
  if (IsComplete(deployment, status) || condition->reason() == kTimedOut) return std::nullopt;
  auto deadline = api::FromTime(condition->last_update_time()) +
                  std::chrono::seconds(deployment.spec().progress_deadline_seconds());
  // One more second, because times on the wire are whole seconds.
  return std::max<std::chrono::nanoseconds>(deadline - now, std::chrono::nanoseconds(0)) +
         std::chrono::seconds(1);
}

}  // namespace keelson::controllers
