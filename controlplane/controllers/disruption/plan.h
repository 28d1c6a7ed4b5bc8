// Computes the status of a PodDisruptionBudget. Pure functions.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/api/proto/policy_v1.pb.h"
#include "lib/api/types.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"

namespace keelson::controllers::disruption {

namespace policyv1 = api::policy::v1;

using Pods = std::vector<std::shared_ptr<const corev1::Pod>>;

// An entry in status.disruptedPods expires after this long without a deletion.
inline constexpr std::chrono::minutes kDeletionTimeout{2};

// True when the budget is a percentage or maxUnavailable, so that it needs the controllers' scale.
bool NeedsScale(const policyv1::PodDisruptionBudget& budget);

struct Plan {
  policyv1::PodDisruptionBudgetStatus status;
  // evicted, but not deleted within kDeletionTimeout
  std::vector<std::shared_ptr<const corev1::Pod>> not_deleted;
  std::optional<std::chrono::seconds> look_again;
};
// `expected`: the number of expected pods. Error when the budget's percentage cannot be parsed.
Result<Plan> MakePlan(const policyv1::PodDisruptionBudget& budget, const Pods& pods, int64_t expected,
                      WallTime now);

// The status to publish when the counts cannot be computed: disruptionsAllowed is zero.
policyv1::PodDisruptionBudgetStatus FailSafe(const policyv1::PodDisruptionBudget& budget,
                                             const std::string& why, WallTime now);

}  // namespace keelson::controllers::disruption
