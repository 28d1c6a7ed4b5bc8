// When a ready pod becomes available. No event marks the end of minReadySeconds, so controllers must requeue.
#pragma once

#include <chrono>
#include <optional>

#include "lib/api/types.h"
#include "lib/base/clock.h"

namespace keelson::controllers {

// Returns at least one millisecond; nullopt: the pod is available, or is not ready.
std::optional<std::chrono::nanoseconds> UntilAvailable(const corev1::Pod& pod, int32_t min_ready_seconds,
                                                       WallTime now);

// Sets `first` to the earlier of the two.
inline void Earliest(std::optional<std::chrono::nanoseconds>& first,
                     std::optional<std::chrono::nanoseconds> other) {
  if (other && (!first || *other < *first)) first = other;
}

}  // namespace keelson::controllers
