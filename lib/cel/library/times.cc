// Parts of timestamps and durations.
#include <fmt/format.h>

#include "lib/cel/library/library.h"
#include "lib/cel/values/time.h"

namespace keelson::cel {
namespace {

using Args = std::span<const Value>;

enum class Part {
  kYear,
  kMonth,
  kDayOfYear,
  kDayOfMonth,
  kDate,
  kDayOfWeek,
  kHours,
  kMinutes,
  kSeconds,
  kMilliseconds
};

int64_t Get(const CivilTime& time, Part part) {
  switch (part) {
    case Part::kYear:
      return time.year;
    case Part::kMonth:
      return time.month - 1;
    case Part::kDayOfYear:
      return time.day_of_year;
    case Part::kDayOfMonth:
      return time.day - 1;
    case Part::kDate:
      return time.day;
    case Part::kDayOfWeek:
      return time.day_of_week;
    case Part::kHours:
      return time.hour;
    case Part::kMinutes:
      return time.minute;
    case Part::kSeconds:
      return time.second;
    case Part::kMilliseconds:
      return time.millisecond;
  }
  return 0;
}

template <Part kPart>
Value OfTime(Args args, Arena&) {
  return Value::Int(Get(CivilTimeUtc(args[0].time()), kPart));
}

template <Part kPart>
Value InZone(Args args, Arena& arena) {
  auto time = CivilTimeIn(args[0].time(), args[1].text());
  if (!time) return Value::Error(fmt::format("unknown time zone {}", args[1].text()), arena);
  return Value::Int(Get(*time, kPart));
}

template <int64_t kUnit>
Value OfDuration(Args args, Arena&) {
  return Value::Int(args[0].nanos() / kUnit);
}

#define KEELSON_CEL_PART(NAME, ID, ZONE_ID, PART)                      \
  {NAME, ID, "timestamp", "", "int", 0, OfTime<Part::PART>}, {         \
    NAME, ZONE_ID, "timestamp", "string", "int", 0, InZone<Part::PART> \
  }

const FunctionRow kRows[] = {
    KEELSON_CEL_PART("getFullYear", "timestamp_to_year", "timestamp_to_year_with_tz", kYear),
    KEELSON_CEL_PART("getMonth", "timestamp_to_month", "timestamp_to_month_with_tz", kMonth),
    KEELSON_CEL_PART("getDayOfYear", "timestamp_to_day_of_year", "timestamp_to_day_of_year_with_tz",
                     kDayOfYear),
    KEELSON_CEL_PART("getDayOfMonth", "timestamp_to_day_of_month", "timestamp_to_day_of_month_with_tz",
                     kDayOfMonth),
    KEELSON_CEL_PART("getDate", "timestamp_to_day_of_month_1_based",
                     "timestamp_to_day_of_month_1_based_with_tz", kDate),
    KEELSON_CEL_PART("getDayOfWeek", "timestamp_to_day_of_week", "timestamp_to_day_of_week_with_tz",
                     kDayOfWeek),
    KEELSON_CEL_PART("getHours", "timestamp_to_hours", "timestamp_to_hours_with_tz", kHours),
    {"getHours", "duration_to_hours", "duration", "", "int", 0, OfDuration<3'600'000'000'000>},
    KEELSON_CEL_PART("getMinutes", "timestamp_to_minutes", "timestamp_to_minutes_with_tz", kMinutes),
    {"getMinutes", "duration_to_minutes", "duration", "", "int", 0, OfDuration<60'000'000'000>},
    KEELSON_CEL_PART("getSeconds", "timestamp_to_seconds", "timestamp_to_seconds_tz", kSeconds),
    {"getSeconds", "duration_to_seconds", "duration", "", "int", 0, OfDuration<1'000'000'000>},
    KEELSON_CEL_PART("getMilliseconds", "timestamp_to_milliseconds", "timestamp_to_milliseconds_with_tz",
                     kMilliseconds),
    {"getMilliseconds", "duration_to_milliseconds", "duration", "", "int", 0, OfDuration<1'000'000>},
};

}  // namespace

std::span<const FunctionRow> StandardTimes() { return kRows; }

}  // namespace keelson::cel
