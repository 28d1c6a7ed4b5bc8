// CronJob schedules: five fields (minute, hour, day of month, month, day of week) or a descriptor such as
// @hourly or @every 1h30m. The dialect of robfig/cron v3's standard parser.
#pragma once

#include <cstdint>
#include <string_view>

#include "lib/base/error.h"

namespace keelson::k8s {

struct CronSchedule {
  // Bit n: the value n is in the set. Bit 63 (kAny) of days or weekdays: the field was "*", so only the
  // other one counts.
  uint64_t minutes = 0, hours = 0, days = 0, months = 0, weekdays = 0;
  int64_t every_seconds = 0;  // for @every; the sets are then empty

  static constexpr uint64_t kAny = uint64_t{1} << 63;
};

// Skips a leading TZ= or CRON_TZ=. kInvalid, in that parser's words.
Result<CronSchedule> ParseCronSchedule(std::string_view text);

}  // namespace keelson::k8s
