// horizontal_pod_autoscaler_controller_*: how often autoscalers and their metrics are looked at, for how
// long, and what comes of it.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "lib/api/proto/autoscaling_v2.pb.h"
#include "lib/api/types.h"
#include "lib/base/error.h"

namespace keelson::controllers::podautoscaler {

enum class Action { kNone, kUp, kDown };

// `failure`: null, or the first error; kInvalid ones are the autoscaler's own (spec), others internal.
void CountReconciliation(Action action, const Error* failure, std::chrono::duration<double> took);
// `replicas` is the proposal, if there is one, for what has `current`.
void CountMetric(const std::string& type, std::optional<int32_t> replicas, int32_t current,
                 const Error* failure, std::chrono::duration<double> took);

// As an autoscaler comes (no `before`), changes and goes (no `after`).
void CountAutoscaler(const api::autoscaling::v2::HorizontalPodAutoscaler* before,
                     const api::autoscaling::v2::HorizontalPodAutoscaler* after);

}  // namespace keelson::controllers::podautoscaler
