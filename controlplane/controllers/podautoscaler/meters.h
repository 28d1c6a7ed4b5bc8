// horizontal_pod_autoscaler_controller_*: counts and durations of reconciliations and metric computations.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "lib/api/proto/autoscaling_v2.pb.h"
#include "lib/api/types.h"
#include "lib/base/error.h"

namespace keelson::controllers::podautoscaler {

enum class Action { kNone, kUp, kDown };

// `failure`: null, or the first error. kInvalid counts as an error of the spec, others as internal.
void CountReconciliation(Action action, const Error* failure, std::chrono::duration<double> took);
// `replicas`: the recommendation, if any. `current`: the target's replicas.
void CountMetric(const std::string& type, std::optional<int32_t> replicas, int32_t current,
                 const Error* failure, std::chrono::duration<double> took);

// Call for each added (no `before`), changed and deleted (no `after`) autoscaler.
void CountAutoscaler(const api::autoscaling::v2::HorizontalPodAutoscaler* before,
                     const api::autoscaling::v2::HorizontalPodAutoscaler* after);

}  // namespace keelson::controllers::podautoscaler
