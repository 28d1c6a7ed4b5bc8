#include "lib/cel/values/time.h"

#include <charconv>
#include <chrono>

#include <absl/time/time.h>
#include <fmt/format.h>

namespace keelson::cel {
namespace {

constexpr int64_t kNanos = 1'000'000'000;

// A fixed number of digits at the start of `text`.
std::optional<int> Digits(std::string_view& text, size_t count) {
  if (text.size() < count) return std::nullopt;
  int value = 0;
  for (size_t i = 0; i < count; ++i) {
    if (text[i] < '0' || text[i] > '9') return std::nullopt;
    value = value * 10 + (text[i] - '0');
  }
  text.remove_prefix(count);
  return value;
}

bool TakeOne(std::string_view& text, char c) {
  if (text.empty() || text[0] != c) return false;
  text.remove_prefix(1);
  return true;
}

std::optional<int64_t> TakeDate(std::string_view& text) {
  auto year = Digits(text, 4);
  if (!year || !TakeOne(text, '-')) return std::nullopt;
  auto month = Digits(text, 2);
  if (!month || !TakeOne(text, '-')) return std::nullopt;
  auto day = Digits(text, 2);
  if (!day) return std::nullopt;
  std::chrono::year_month_day date{std::chrono::year(*year),
                                   std::chrono::month(static_cast<unsigned>(*month)),
                                   std::chrono::day(static_cast<unsigned>(*day))};
  if (!date.ok()) return std::nullopt;
  return std::chrono::sys_days(date).time_since_epoch().count() * int64_t{86400};
}

// "Z", "+02:00", "-08:30" and nothing behind it; minutes.
std::optional<int> TakeOffset(std::string_view text) {
  if (text == "Z") return 0;
  if (text.empty() || (text[0] != '+' && text[0] != '-')) return std::nullopt;
  int sign = text[0] == '-' ? -1 : 1;
  text.remove_prefix(1);
  auto hours = Digits(text, 2);
  if (!hours || !TakeOne(text, ':')) return std::nullopt;
  auto minutes = Digits(text, 2);
  if (!minutes || !text.empty() || *hours > 24 || *minutes > 60) return std::nullopt;
  return sign * (*hours * 60 + *minutes);
}

CivilTime Civil(int64_t seconds, int32_t nanos) {
  using std::chrono::days;
  auto moment = std::chrono::sys_seconds(std::chrono::seconds(seconds));
  auto day = std::chrono::floor<days>(moment);
  std::chrono::year_month_day date(day);
  auto rest = (moment - day).count();
  CivilTime out{};
  out.year = static_cast<int>(date.year());
  out.month = static_cast<int>(static_cast<unsigned>(date.month()));
  out.day = static_cast<int>(static_cast<unsigned>(date.day()));
  out.day_of_year =
      static_cast<int>((day - std::chrono::sys_days(date.year() / std::chrono::January / 1)).count());
  out.day_of_week = static_cast<int>(std::chrono::weekday(day).c_encoding());
  out.hour = static_cast<int>(rest / 3600);
  out.minute = static_cast<int>(rest / 60 % 60);
  out.second = static_cast<int>(rest % 60);
  out.millisecond = nanos / 1'000'000;
  return out;
}

bool InRange(int64_t seconds) { return seconds >= kZeroTimeSeconds && seconds <= kLastTimeSeconds; }

}  // namespace

std::optional<Timestamp> ParseTime(std::string_view text) {
  auto date = TakeDate(text);
  if (!date || !TakeOne(text, 'T')) return std::nullopt;
  auto hour = Digits(text, 2);
  if (!hour || !TakeOne(text, ':')) return std::nullopt;
  auto minute = Digits(text, 2);
  if (!minute || !TakeOne(text, ':')) return std::nullopt;
  auto second = Digits(text, 2);
  if (!second || *hour > 23 || *minute > 59 || *second > 59) return std::nullopt;
  Timestamp out;
  if (text.size() > 1 && (text[0] == '.' || text[0] == ',') && text[1] >= '0' && text[1] <= '9') {
    text.remove_prefix(1);
    int32_t unit = 100'000'000;
    while (!text.empty() && text[0] >= '0' && text[0] <= '9') {
      out.nanos += (text[0] - '0') * unit;
      unit /= 10;
      text.remove_prefix(1);
    }
  }
  auto offset = TakeOffset(text);
  if (!offset) return std::nullopt;
  out.zone_minutes = static_cast<int16_t>(*offset);
  out.seconds = *date + *hour * 3600 + *minute * 60 + *second - *offset * 60;
  return out;
}

std::optional<Timestamp> ParseDate(std::string_view text) {
  auto date = TakeDate(text);
  if (!date || !text.empty()) return std::nullopt;
  return Timestamp{*date, 0, 0};
}

std::string FormatTime(const Timestamp& time) {
  CivilTime c = Civil(time.seconds + time.zone_minutes * int64_t{60}, time.nanos);
  std::string out =
      fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}", c.year, c.month, c.day, c.hour, c.minute, c.second);
  if (time.nanos != 0) {
    out += fmt::format(".{:09}", time.nanos);
    out.erase(out.find_last_not_of('0') + 1);
  }
  if (time.zone_minutes == 0) return out + "Z";
  int offset = time.zone_minutes < 0 ? -time.zone_minutes : time.zone_minutes;
  return out + fmt::format("{}{:02}:{:02}", time.zone_minutes < 0 ? '-' : '+', offset / 60, offset % 60);
}

CivilTime CivilTimeUtc(const Timestamp& time) { return Civil(time.seconds, time.nanos); }

std::optional<CivilTime> CivilTimeIn(const Timestamp& time, std::string_view zone) {
  size_t colon = zone.find(':');
  if (colon == std::string_view::npos) {
    absl::TimeZone loaded;
    if (zone.empty() || zone == "UTC") return CivilTimeUtc(time);
    if (!absl::LoadTimeZone(std::string(zone), &loaded)) return std::nullopt;
    auto info = loaded.At(absl::FromUnixSeconds(time.seconds));
    return Civil(time.seconds + info.offset, time.nanos);
  }
  // An offset: hours with a sign or none, and minutes.
  std::string_view hours = zone.substr(0, colon), minutes = zone.substr(colon + 1);
  if (hours.starts_with('+')) hours.remove_prefix(1);
  int h = 0, m = 0;
  auto [h_end, h_error] = std::from_chars(hours.data(), hours.data() + hours.size(), h);
  auto [m_end, m_error] = std::from_chars(minutes.data(), minutes.data() + minutes.size(), m);
  if (h_error != std::errc() || h_end != hours.data() + hours.size() || m_error != std::errc() ||
      m_end != minutes.data() + minutes.size() || h < -24 || h > 24 || m < 0 || m > 60) {
    return std::nullopt;
  }
  int64_t offset = h < 0 || hours.starts_with('-') ? h * 60 - m : h * 60 + m;
  return Civil(time.seconds + offset * 60, time.nanos);
}

std::optional<Timestamp> AddNanos(const Timestamp& time, int64_t nanos) {
  Timestamp out = time;
  int64_t sum = time.nanos + nanos % kNanos;
  out.seconds += nanos / kNanos + (sum < 0 ? -1 : sum >= kNanos ? 1 : 0);
  out.nanos = static_cast<int32_t>(sum < 0 ? sum + kNanos : sum >= kNanos ? sum - kNanos : sum);
  if (!InRange(out.seconds)) return std::nullopt;
  return out;
}

std::optional<int64_t> NanosBetween(const Timestamp& later, const Timestamp& earlier) {
  int64_t out;
  if (__builtin_mul_overflow(later.seconds - earlier.seconds, kNanos, &out) ||
      __builtin_add_overflow(out, static_cast<int64_t>(later.nanos) - earlier.nanos, &out)) {
    return std::nullopt;
  }
  return out;
}

}  // namespace keelson::cel
