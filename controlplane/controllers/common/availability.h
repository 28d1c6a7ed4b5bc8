// When a ready pod becomes available: minReadySeconds pass without anybody saying so, and a controller that
// waits for it has to look again by itself.
#pragma once

#include <chrono>
#include <optional>

#include "lib/api/types.h"
#include "lib/base/clock.h"

namespace keelson::controllers {

// At least a millisecond; nullopt: it is available, or time alone will not make it so.
std::optional<std::chrono::nanoseconds> UntilAvailable(const corev1::Pod& pod, int32_t min_ready_seconds,
                                                       WallTime now);

// Keeps the earlier one.
inline void Earliest(std::optional<std::chrono::nanoseconds>& first,
                     std::optional<std::chrono::nanoseconds> other) {
  if (other && (!first || *other < *first)) first = other;
}

}  // namespace keelson::controllers
