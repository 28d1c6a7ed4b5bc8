#include "lib/k8s/text/cron_schedule.h"

#include <gtest/gtest.h>

namespace keelson::k8s {
namespace {

TEST(CronSchedule, Parses) {
  const auto schedule = ParseCronSchedule("*/15 0-5,22 1 jan-mar MON");
  ASSERT_TRUE(schedule);
  EXPECT_EQ(schedule->minutes,
            (uint64_t{1} << 0) | (uint64_t{1} << 15) | (uint64_t{1} << 30) | (uint64_t{1} << 45));
  EXPECT_EQ(schedule->hours, uint64_t{0x3f} | (uint64_t{1} << 22));
  EXPECT_EQ(schedule->days, uint64_t{2});
  EXPECT_EQ(schedule->months, uint64_t{0b1110});
  EXPECT_EQ(schedule->weekdays, uint64_t{2});
  EXPECT_EQ(ParseCronSchedule("@every 1h30m")->every_seconds, 5400);
  EXPECT_EQ(ParseCronSchedule("@hourly")->minutes, uint64_t{1});
  EXPECT_TRUE(ParseCronSchedule("TZ=UTC 0 * * * ?")->weekdays & CronSchedule::kAny);
}

TEST(CronSchedule, SaysWhatIsWrong) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "empty spec string"},
      {"* * *", "expected exactly 5 fields, found 3: [* * *]"},
      {"60 * * * *", "end of range (60) above maximum (59): 60"},
      {"* * 0 * *", "beginning of range (0) below minimum (1): 0"},
      {"5-1 * * * *", "beginning of range (5) beyond end of range (1): 5-1"},
      {"*/0 * * * *", "step of range should be a positive number: */0"},
      {"1-2-3 * * * *", "too many hyphens: 1-2-3"},
      {"1/2/3 * * * *", "too many slashes: 1/2/3"},
      {"x * * * *", R"(failed to parse int from x: strconv.Atoi: parsing "x": invalid syntax)"},
      {"@sometimes", "unrecognized descriptor: @sometimes"},
      {"TZ=UTC", "provided bad location TZ=UTC"},
  };
  for (const auto& [text, message] : cases) {
    const auto schedule = ParseCronSchedule(text);
    ASSERT_FALSE(schedule) << text;
    EXPECT_EQ(schedule.error().message(), message);
  }
}

}  // namespace
}  // namespace keelson::k8s
