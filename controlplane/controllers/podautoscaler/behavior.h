// How fast and how far replicas follow what the metrics ask for: limits, policies, stabilization. Pure but
// for the history that it keeps.
#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>
#include <vector>

#include "lib/api/proto/autoscaling_v2.pb.h"
#include "lib/base/clock.h"

namespace keelson::controllers::podautoscaler {

// What one autoscaler has asked for and done lately. Lost with the process: then stabilization begins anew.
struct History {
  struct Entry {
    WallTime time;
    int32_t value;
  };
  std::vector<Entry> recommendations;  // replicas
  std::vector<Entry> ups, downs;       // pods added and taken away
};

struct Wish {
  int32_t min_replicas, max_replicas, current_replicas, desired_replicas;
};

// The answer, with the words for the conditions AbleToScale and ScalingLimited.
struct Decision {
  int32_t replicas;
  std::string_view able_reason, able_message;
  bool limited;
  std::string_view limited_reason, limited_message;
};

// `behavior` null: the rules of before there was one. It may come without its defaults. `down_window` is how
// long a higher recommendation holds where the behaviour does not say.
Decision Decide(const Wish& wish, const api::autoscaling::v2::HorizontalPodAutoscalerBehavior* behavior,
                std::chrono::seconds down_window, WallTime now, History& history);

// Remembers that replicas went from `before` to `after`.
void NoteScale(int32_t before, int32_t after,
               const api::autoscaling::v2::HorizontalPodAutoscalerBehavior* behavior, WallTime now,
               History& history);

}  // namespace keelson::controllers::podautoscaler
