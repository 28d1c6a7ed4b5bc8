#include "controlplane/controllers/cronjob/time_zone.h"

#include <cstdlib>

#include <absl/time/civil_time.h>
#include <absl/time/time.h>
#include <fmt/format.h>

namespace keelson::controllers {

struct TimeZone::Impl {
  absl::TimeZone zone;
};

TimeZone TimeZone::Utc() { return TimeZone(std::make_shared<const Impl>(Impl{absl::UTCTimeZone()})); }
TimeZone TimeZone::Local() { return TimeZone(std::make_shared<const Impl>(Impl{absl::LocalTimeZone()})); }

std::optional<TimeZone> TimeZone::Load(const std::string& name) {
  Impl impl;
  // absl also accepts names that are not in tzdata ("localtime", "Fixed/..."): reject them.
  if (name.empty() || name == "localtime" || name.starts_with("Fixed/") || name.front() == '/' ||
      name.front() == ':' || name.find("..") != std::string::npos || !absl::LoadTimeZone(name, &impl.zone)) {
    return std::nullopt;
  }
  return TimeZone(std::make_shared<const Impl>(impl));
}

CivilTime TimeZone::At(WallTime time) const {
  const absl::TimeZone::CivilInfo info = impl_->zone.At(absl::FromChrono(time));
  const absl::CivilSecond& cs = info.cs;
  // absl's week begins with Monday.
  const int weekday = (static_cast<int>(absl::GetWeekday(cs)) + 1) % 7;
  return {cs.year(), cs.month(), cs.day(), cs.hour(), cs.minute(), cs.second(), weekday, info.offset};
}

WallTime TimeZone::FirstAt(const CivilTime& civil) const {
  const absl::CivilSecond cs(civil.year, civil.month, civil.day, civil.hour, civil.minute, civil.second);
  const absl::TimeZone::TimeInfo info = impl_->zone.At(cs);
  return absl::ToChronoTime(info.kind == absl::TimeZone::TimeInfo::SKIPPED ? info.trans : info.pre);
}

std::string FormatIn(const TimeZone& zone, WallTime time) {
  const CivilTime c = zone.At(time);
  const int minutes = std::abs(c.offset_seconds) / 60;
  const std::string offset =
      c.offset_seconds == 0
          ? "Z"
          : fmt::format("{}{:02}:{:02}", c.offset_seconds < 0 ? '-' : '+', minutes / 60, minutes % 60);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}{}", c.year, c.month, c.day, c.hour, c.minute,
                     c.second, offset);
}

std::optional<WallTime> ParseRfc3339(const std::string& text) {
  absl::Time time;
  if (!absl::ParseTime(absl::RFC3339_sec, text, &time, nullptr)) return std::nullopt;
  return absl::ToChronoTime(time);
}

std::string FormatRfc1123(WallTime time) {
  constexpr const char* kDays[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  constexpr const char* kMonths[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const CivilTime c = TimeZone::Utc().At(time);
  return fmt::format("{}, {:02} {} {} {:02}:{:02}:{:02} +0000", kDays[c.weekday], c.day, kMonths[c.month - 1],
                     c.year, c.hour, c.minute, c.second);
}

}  // namespace keelson::controllers
