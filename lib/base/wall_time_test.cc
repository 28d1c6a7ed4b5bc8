#include "lib/base/wall_time.h"

#include <gtest/gtest.h>

#include <limits>

namespace keelson {
namespace {

constexpr int64_t kLast = std::numeric_limits<int64_t>::max(), kFirst = std::numeric_limits<int64_t>::min();
constexpr int64_t kYear9999 = 253402300799, kYear1 = -62135596800;

TEST(WallTime, OfTodayIsExact) {
  EXPECT_EQ(WallTimeOf(1'800'000'000, 5).time_since_epoch(),
            std::chrono::seconds(1'800'000'000) + std::chrono::nanoseconds(5));
  EXPECT_EQ(Span(86400), std::chrono::hours(24));
  EXPECT_EQ(Span(-1), std::chrono::seconds(-1));
}

TEST(WallTime, NothingWrapsRound) {
  const WallTime today = WallTimeOf(1'800'000'000);
  for (int64_t late : {kLast, kYear9999}) {
    EXPECT_GT(WallTimeOf(late, 999'999'999), today);
    EXPECT_GT(WallTimeOf(late) - today, std::chrono::hours(0));
    EXPECT_GT(WallTimeOf(late) + Span(kLast), WallTimeOf(late));
    EXPECT_GT(today + Span(late), today);
    EXPECT_LT(today - Span(late), today);
  }
  for (int64_t early : {kFirst, kYear1}) {
    EXPECT_LT(WallTimeOf(early), today);
    EXPECT_GT(today - WallTimeOf(early), std::chrono::hours(0));
    EXPECT_LT(WallTimeOf(early) + Span(kFirst), WallTimeOf(early));
    EXPECT_GT(WallTimeOf(kLast) - WallTimeOf(early), std::chrono::hours(0));
  }
}

}  // namespace
}  // namespace keelson
