// What a PodDisruptionBudget's status should be. Pure.
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

// An eviction that has not become a deletion after this long is not going to.
inline constexpr std::chrono::minutes kDeletionTimeout{2};

// Does the budget need to know how many pods there should be, rather than how many there are?
bool NeedsScale(const policyv1::PodDisruptionBudget& budget);

struct Plan {
  policyv1::PodDisruptionBudgetStatus status;
  std::vector<std::shared_ptr<const corev1::Pod>> not_deleted;  // evicted long ago, and still there
  std::optional<std::chrono::seconds> look_again;
};
// `expected`: how many pods there should be. The error is of a percentage that is none.
Result<Plan> MakePlan(const policyv1::PodDisruptionBudget& budget, const Pods& pods, int64_t expected,
                      WallTime now);

// What to show when the truth cannot be found out: nobody may be evicted.
policyv1::PodDisruptionBudgetStatus FailSafe(const policyv1::PodDisruptionBudget& budget,
                                             const std::string& why, WallTime now);

}  // namespace keelson::controllers::disruption
