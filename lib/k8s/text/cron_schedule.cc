#include "lib/k8s/text/cron_schedule.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "lib/base/text.h"
#include "lib/k8s/field_error.h"

namespace keelson::k8s {

namespace {

struct Bounds {
  uint32_t min, max;
  std::vector<std::string_view> names;  // of min, min + 1, ...
};

const Bounds kMinutes{0, 59, {}}, kHours{0, 23, {}}, kDays{1, 31, {}};
const Bounds kMonths{
    1, 12, {"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}};
const Bounds kWeekdays{0, 6, {"sun", "mon", "tue", "wed", "thu", "fri", "sat"}};

Error Invalid(std::string message) { return Error(Code::kInvalid, std::move(message)); }

Result<uint32_t> ParseNumber(std::string_view text) {
  int64_t value = 0;
  std::string_view digits = text;
  if (digits.starts_with('+')) digits.remove_prefix(1);
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (parsed.ec == std::errc::result_out_of_range) {
    return Invalid(fmt::format("failed to parse int from {}: strconv.Atoi: parsing {}: value out of range",
                               text, Quote(text)));
  }
  if (digits.empty() || parsed.ec != std::errc() || parsed.ptr != digits.data() + digits.size()) {
    return Invalid(fmt::format("failed to parse int from {}: strconv.Atoi: parsing {}: invalid syntax", text,
                               Quote(text)));
  }
  if (value < 0) return Invalid(fmt::format("negative number ({}) not allowed: {}", value, text));
  return static_cast<uint32_t>(std::min<int64_t>(value, UINT32_MAX));
}

Result<uint32_t> ParseNumberOrName(std::string_view text, const Bounds& bounds) {
  const std::string lower = Lower(text);
  for (size_t i = 0; i < bounds.names.size(); ++i) {
    if (bounds.names[i] == lower) return bounds.min + static_cast<uint32_t>(i);
  }
  return ParseNumber(text);
}

// Parses "*", "5" or "1-5", each optionally with "/2".
Result<uint64_t> ParseRange(std::string_view text, const Bounds& bounds) {
  const auto with_step = Split(text, '/');
  const auto ends = Split(with_step[0], '-');
  const bool star = ends[0] == "*" || ends[0] == "?";
  uint32_t first = bounds.min, last = bounds.max, step = 1;
  if (!star) {
    KEELSON_ASSIGN_OR_RETURN(first, ParseNumberOrName(ends[0], bounds));
    last = first;
    if (ends.size() == 2) {
      KEELSON_ASSIGN_OR_RETURN(last, ParseNumberOrName(ends[1], bounds));
    } else if (ends.size() > 2) {
      return Invalid(fmt::format("too many hyphens: {}", text));
    }
  }
  if (with_step.size() > 2) return Invalid(fmt::format("too many slashes: {}", text));
  if (with_step.size() == 2) {
    KEELSON_ASSIGN_OR_RETURN(step, ParseNumber(with_step[1]));
    // "5/15" starts at 5 and has no end.
    if (ends.size() == 1 && !star) last = bounds.max;
  }
  if (first < bounds.min) {
    return Invalid(fmt::format("beginning of range ({}) below minimum ({}): {}", first, bounds.min, text));
  }
  if (last > bounds.max) {
    return Invalid(fmt::format("end of range ({}) above maximum ({}): {}", last, bounds.max, text));
  }
  if (first > last) {
    return Invalid(fmt::format("beginning of range ({}) beyond end of range ({}): {}", first, last, text));
  }
  if (step == 0) return Invalid(fmt::format("step of range should be a positive number: {}", text));
  uint64_t bits = star && step == 1 ? CronSchedule::kAny : 0;
  for (uint64_t value = first; value <= last; value += step) bits |= uint64_t{1} << value;
  return bits;
}

Result<uint64_t> ParseField(std::string_view text, const Bounds& bounds) {
  uint64_t bits = 0;
  for (std::string_view part : SplitWords(text, ",")) {
    KEELSON_ASSIGN_OR_RETURN(const uint64_t range, ParseRange(part, bounds));
    bits |= range;
  }
  return bits;
}

// Go's time.ParseDuration, in seconds; at least one.
Result<int64_t> ParseEvery(std::string_view text) {
  const Error bad = Invalid(
      fmt::format("failed to parse duration @every {}: time: invalid duration {}", text, Quote(text)));
  const std::pair<std::string_view, double> units[] = {{"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3},
                                                       {"s", 1},     {"m", 60},    {"h", 3600}};
  double seconds = 0;
  std::string_view rest = text;
  if (rest.starts_with('+')) rest.remove_prefix(1);
  if (rest.empty()) return bad;
  while (!rest.empty()) {
    const size_t end = rest.find_first_not_of("0123456789.");
    if (end == 0 || end == std::string_view::npos) return bad;
    double number = 0;
    const auto parsed = std::from_chars(rest.data(), rest.data() + end, number);
    if (parsed.ec != std::errc() || parsed.ptr != rest.data() + end) return bad;
    rest.remove_prefix(end);
    const std::string_view unit = rest.substr(0, rest.find_first_of("0123456789."));
    bool known = false;
    for (const auto& [name, scale] : units) {
      if (name != unit) continue;
      seconds += number * scale;
      known = true;
    }
    if (!known) return bad;
    rest.remove_prefix(unit.size());
  }
  return std::max<int64_t>(1, static_cast<int64_t>(seconds));
}

Result<CronSchedule> ParseDescriptor(std::string_view text) {
  const std::pair<std::string_view, std::string_view> names[] = {
      {"@yearly", "0 0 1 1 *"}, {"@annually", "0 0 1 1 *"}, {"@monthly", "0 0 1 * *"},
      {"@weekly", "0 0 * * 0"}, {"@daily", "0 0 * * *"},    {"@midnight", "0 0 * * *"},
      {"@hourly", "0 * * * *"}};
  for (const auto& [name, fields] : names) {
    if (name == text) return ParseCronSchedule(fields);
  }
  constexpr std::string_view kEvery = "@every ";
  if (!text.starts_with(kEvery)) return Invalid(fmt::format("unrecognized descriptor: {}", text));
  CronSchedule schedule;
  KEELSON_ASSIGN_OR_RETURN(schedule.every_seconds, ParseEvery(text.substr(kEvery.size())));
  return schedule;
}

}  // namespace

Result<CronSchedule> ParseCronSchedule(std::string_view text) {
  if (text.empty()) return Invalid("empty spec string");
  if (text.starts_with("TZ=") || text.starts_with("CRON_TZ=")) {
    const size_t space = text.find(' ');
    if (space == std::string_view::npos) return Invalid(fmt::format("provided bad location {}", text));
    text.remove_prefix(text.find_first_not_of(' ', space) == std::string_view::npos
                           ? text.size()
                           : text.find_first_not_of(' ', space));
  }
  if (text.starts_with('@')) return ParseDescriptor(text);
  const auto fields = SplitWords(text);
  if (fields.size() != 5) {
    return Invalid(
        fmt::format("expected exactly 5 fields, found {}: [{}]", fields.size(), fmt::join(fields, " ")));
  }
  CronSchedule schedule;
  KEELSON_ASSIGN_OR_RETURN(schedule.minutes, ParseField(fields[0], kMinutes));
  KEELSON_ASSIGN_OR_RETURN(schedule.hours, ParseField(fields[1], kHours));
  KEELSON_ASSIGN_OR_RETURN(schedule.days, ParseField(fields[2], kDays));
  KEELSON_ASSIGN_OR_RETURN(schedule.months, ParseField(fields[3], kMonths));
  KEELSON_ASSIGN_OR_RETURN(schedule.weekdays, ParseField(fields[4], kWeekdays));
  return schedule;
}

}  // namespace keelson::k8s
