// Conversion of foreign times and durations. WallTime counts nanoseconds, which reach 292 years before and
// after 1970, while an API object or a certificate may name any second: the year 9999, or an endless grace
// period.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "lib/base/clock.h"

namespace keelson {

inline constexpr int64_t kSecondsAYear = 31556952;

// Clamps to the years 1880 to 2160, so that differences, and sums with a Span, stay in range.
inline WallTime WallTimeOf(int64_t seconds, int32_t nanos = 0) {
  return WallTime(std::chrono::seconds(std::clamp(seconds, -90 * kSecondsAYear, 190 * kSecondsAYear)) +
                  std::chrono::nanoseconds(nanos));
}

// Clamps to a century in either direction.
inline std::chrono::seconds Span(int64_t seconds) {
  return std::chrono::seconds(std::clamp(seconds, -100 * kSecondsAYear, 100 * kSecondsAYear));
}

}  // namespace keelson
