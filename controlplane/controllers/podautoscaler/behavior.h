// Limits how fast and how far replicas follow the metrics (spec.behavior): limits, policies, stabilization.
// Pure except for the history.
#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>
#include <vector>

#include "lib/api/proto/autoscaling_v2.pb.h"
#include "lib/base/clock.h"

namespace keelson::controllers::podautoscaler {

// Recent recommendations and scale events of one autoscaler. Kept in memory only: stabilization restarts with
// the process.
struct History {
  struct Entry {
    WallTime time;
    int32_t value;
  };
  std::vector<Entry> recommendations;  // replicas
  std::vector<Entry> ups, downs;       // pods added and removed
};

struct Wish {
  int32_t min_replicas, max_replicas, current_replicas, desired_replicas;
};

// The result, with reasons and messages for the conditions AbleToScale and ScalingLimited.
struct Decision {
  int32_t replicas;
  std::string_view able_reason, able_message;
  bool limited;
  std::string_view limited_reason, limited_message;
};

// `behavior` null: the rules without spec.behavior. Fields without a value get their defaults. `down_window`:
// the stabilization window for scaling down when `behavior` does not set one.
Decision Decide(const Wish& wish, const api::autoscaling::v2::HorizontalPodAutoscalerBehavior* behavior,
                std::chrono::seconds down_window, WallTime now, History& history);

// Records a change of replicas from `before` to `after`.
void NoteScale(int32_t before, int32_t after,
               const api::autoscaling::v2::HorizontalPodAutoscalerBehavior* behavior, WallTime now,
               History& history);

}  // namespace keelson::controllers::podautoscaler
