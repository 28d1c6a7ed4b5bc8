// IANA time zones, read from the host's tzdata.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "lib/base/clock.h"

namespace keelson::controllers {

// A date and time on a wall clock.
struct CivilTime {
  int64_t year = 1970;
  int month = 1, day = 1, hour = 0, minute = 0, second = 0;
  int weekday = 0;         // 0: Sunday; ignored by FirstAt()
  int offset_seconds = 0;  // east of UTC; ignored by FirstAt()
};

class TimeZone {  // a value; thread safe
 public:
  static TimeZone Utc();
  static TimeZone Local();                                       // $TZ, or the host's zone
  static std::optional<TimeZone> Load(const std::string& name);  // nullopt: unknown zone

  CivilTime At(WallTime time) const;
  // The first instant with this wall clock time; if a DST change skips it, the first instant after the gap.
  // Fields may be out of range: month 13 is January of the next year.
  WallTime FirstAt(const CivilTime& civil) const;

 private:
  struct Impl;
  explicit TimeZone(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<const Impl> impl_;
};

// RFC 3339 in that zone: 2026-01-02T03:04:05+01:00, or ...Z in UTC.
std::string FormatIn(const TimeZone& zone, WallTime time);
// Nullopt when `text` is not RFC 3339.
std::optional<WallTime> ParseRfc3339(const std::string& text);
// RFC 1123 with a numeric zone, in UTC: Mon, 02 Jan 2006 15:04:05 +0000.
std::string FormatRfc1123(WallTime time);

}  // namespace keelson::controllers
