#include "controlplane/controllers/disruption/plan.h"

#include <algorithm>

#include "lib/api/meta.h"
#include "lib/k8s/int_or_string.h"
#include "lib/k8s/pods/conditions.h"
#include "lib/k8s/pods/pod_util.h"

namespace keelson::controllers::disruption {
namespace {

Result<int64_t> DesiredHealthy(const policyv1::PodDisruptionBudgetSpec& spec, int64_t expected) {
  if (spec.has_max_unavailable()) {
    KEELSON_ASSIGN_OR_RETURN(int64_t unavailable, k8s::ScaledValue(spec.max_unavailable(), expected, true));
    return std::max<int64_t>(0, expected - unavailable);
  }
  if (spec.has_min_available()) return k8s::ScaledValue(spec.min_available(), expected, true);
  return int64_t{0};
}

}  // namespace

bool NeedsScale(const policyv1::PodDisruptionBudget& budget) {
  const policyv1::PodDisruptionBudgetSpec& spec = budget.spec();
  return spec.has_max_unavailable() || (spec.has_min_available() && k8s::IsString(spec.min_available()));
}

Result<Plan> MakePlan(const policyv1::PodDisruptionBudget& budget, const Pods& pods, int64_t expected,
                      WallTime now) {
  Plan plan;
  KEELSON_ASSIGN_OR_RETURN(int64_t desired, DesiredHealthy(budget.spec(), expected));
  int64_t healthy = 0;
  for (const auto& pod : pods) {
    if (k8s::IsTerminating(*pod)) continue;
    const auto evicted = budget.status().disrupted_pods().find(pod->metadata().name());
    if (evicted != budget.status().disrupted_pods().end()) {
      const auto left = api::FromTime(evicted->second) + kDeletionTimeout - now;
      if (left >= left.zero()) {
        (*plan.status.mutable_disrupted_pods())[evicted->first] = evicted->second;
        const auto seconds = std::chrono::ceil<std::chrono::seconds>(left) + std::chrono::seconds(1);
        plan.look_again = plan.look_again ? std::min(*plan.look_again, seconds) : seconds;
        continue;
      }
      plan.not_deleted.push_back(pod);
    }
    if (k8s::IsReady(*pod)) ++healthy;
  }
  // A budget without matching pods allows no disruption, so that the first pods are safe until they are
  // counted.
  const int64_t allowed = expected <= 0 ? 0 : std::max<int64_t>(0, healthy - desired);
  plan.status.set_expected_pods(static_cast<int32_t>(expected));
  plan.status.set_current_healthy(static_cast<int32_t>(healthy));
  plan.status.set_desired_healthy(static_cast<int32_t>(desired));
  plan.status.set_disruptions_allowed(static_cast<int32_t>(allowed));
  plan.status.set_observed_generation(budget.metadata().generation());
  policyv1::PodDisruptionBudget next = budget;
  *plan.status.mutable_conditions() = budget.status().conditions();
  next.mutable_status()->Swap(&plan.status);
  k8s::SyncDisruptionAllowed(next, now);
  next.mutable_status()->Swap(&plan.status);
  return plan;
}

policyv1::PodDisruptionBudgetStatus FailSafe(const policyv1::PodDisruptionBudget& budget,
                                             const std::string& why, WallTime now) {
  policyv1::PodDisruptionBudgetStatus status = budget.status();
  status.set_disruptions_allowed(0);
  metav1::Condition condition;
  condition.set_type(std::string(k8s::kDisruptionAllowed));
  condition.set_status("False");
  condition.set_reason(std::string(k8s::kSyncFailed));
  condition.set_message(why);
  if (status.observed_generation() != 0) condition.set_observed_generation(status.observed_generation());
  k8s::SetCondition(*status.mutable_conditions(), std::move(condition), now);
  return status;
}

}  // namespace keelson::controllers::disruption
