#include "lib/api/meta.h"

#include <gtest/gtest.h>

#include <limits>

namespace keelson::api {
namespace {

metav1::Time At(int64_t seconds) {
  metav1::Time time;
  time.set_seconds(seconds);
  return time;
}

TEST(Times, ThatClientsWriteStayOnTheirSideOfNow) {
  const WallTime now = Clock::Real().Now();
  metav1::MicroTime micro;
  micro.set_seconds(253402300799);
  EXPECT_GT(FromTime(At(253402300799)), now);
  EXPECT_GT(FromMicroTime(micro), now);
  EXPECT_GT(FromTime(At(std::numeric_limits<int64_t>::max())), now);
  EXPECT_LT(FromTime(At(-62135596800)), now);
  EXPECT_EQ(ToTime(FromTime(At(1'800'000'000))).seconds(), 1'800'000'000);
}

TEST(Times, AreWrittenWithYearsOfFourDigits) {
  const std::pair<int64_t, const char*> cases[] = {
      {0, "1970-01-01T00:00:00Z"},
      {-62135596800, "0001-01-01T00:00:00Z"},
      {253402300799, "9999-12-31T23:59:59Z"},
      {std::numeric_limits<int64_t>::max(), "9999-12-31T23:59:59Z"},
      {std::numeric_limits<int64_t>::min(), "0001-01-01T00:00:00Z"},
  };
  for (const auto& [seconds, text] : cases) EXPECT_EQ(FormatTime(At(seconds)), text);
}

}  // namespace
}  // namespace keelson::api
