#include "lib/k8s/pods/conditions.h"

#include "lib/api/meta.h"

namespace keelson::k8s {

const metav1::Condition* FindCondition(const Conditions& conditions, std::string_view type) {
  for (const metav1::Condition& condition : conditions) {
    if (condition.type() == type) return &condition;
  }
  return nullptr;
}

bool SetCondition(Conditions& conditions, metav1::Condition condition, WallTime now) {
  for (metav1::Condition& existing : conditions) {
    if (existing.type() != condition.type()) continue;
    if (existing.status() == condition.status()) {
      *condition.mutable_last_transition_time() = existing.last_transition_time();
    } else {
      *condition.mutable_last_transition_time() = api::ToTime(now);
    }
    const bool same = existing.SerializeAsString() == condition.SerializeAsString();
    existing = std::move(condition);
    return !same;
  }
  *condition.mutable_last_transition_time() = api::ToTime(now);
  *conditions.Add() = std::move(condition);
  return true;
}

void SyncDisruptionAllowed(api::policy::v1::PodDisruptionBudget& budget, WallTime now) {
  const bool allowed = budget.status().disruptions_allowed() > 0;
  metav1::Condition condition;
  condition.set_type(std::string(kDisruptionAllowed));
  condition.set_status(allowed ? "True" : "False");
  condition.set_reason(allowed ? "SufficientPods" : "InsufficientPods");
  if (budget.status().observed_generation() != 0) {
    condition.set_observed_generation(budget.status().observed_generation());
  }
  SetCondition(*budget.mutable_status()->mutable_conditions(), std::move(condition), now);
}

}  // namespace keelson::k8s
