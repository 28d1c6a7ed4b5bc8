// metav1.Condition lists: one condition per type.
#pragma once

#include <string_view>

#include "lib/api/proto/policy_v1.pb.h"
#include "lib/api/types.h"
#include "lib/base/clock.h"

namespace keelson::k8s {

using Conditions = google::protobuf::RepeatedPtrField<metav1::Condition>;

// Null when absent.
const metav1::Condition* FindCondition(const Conditions& conditions, std::string_view type);
// Adds the condition or replaces the one of its type. lastTransitionTime becomes `now` when the status
// changes; otherwise it stays. True: something has changed.
bool SetCondition(Conditions& conditions, metav1::Condition condition, WallTime now);

inline constexpr std::string_view kDisruptionAllowed = "DisruptionAllowed";
inline constexpr std::string_view kSyncFailed = "SyncFailed";
// Sets the DisruptionAllowed condition to what status.disruptionsAllowed says.
void SyncDisruptionAllowed(api::policy::v1::PodDisruptionBudget& budget, WallTime now);

}  // namespace keelson::k8s
