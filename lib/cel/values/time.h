// Timestamps and durations as CEL reads and prints them: Go's time package.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "lib/cel/values/value.h"

namespace keelson::cel {

inline constexpr int64_t kZeroTimeSeconds = -62135596800;  // 0001-01-01T00:00:00Z: the first that CEL has
inline constexpr int64_t kLastTimeSeconds = 253402300799;  // 9999-12-31T23:59:59Z

std::optional<Timestamp> ParseTime(std::string_view text);  // RFC 3339, with any offset and fraction
std::optional<Timestamp> ParseDate(std::string_view text);  // 2006-01-02
std::string FormatTime(const Timestamp& time);              // RFC 3339, in the time's own zone

// Of a moment, in a zone.
struct CivilTime {
  int64_t year;
  int month, day;                // from 1
  int day_of_year, day_of_week;  // from 0; Sunday is 0
  int hour, minute, second, millisecond;
};

// `zone`: "UTC", "America/New_York", or an offset such as "-08:00". Nothing if there is no such zone.
std::optional<CivilTime> CivilTimeIn(const Timestamp& time, std::string_view zone);
CivilTime CivilTimeUtc(const Timestamp& time);

// The moment `nanos` later; nothing if it is out of CEL's range.
std::optional<Timestamp> AddNanos(const Timestamp& time, int64_t nanos);
std::optional<int64_t> NanosBetween(const Timestamp& later, const Timestamp& earlier);

}  // namespace keelson::cel
