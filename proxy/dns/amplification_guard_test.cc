#include "proxy/dns/amplification_guard.h"

#include <gtest/gtest.h>

namespace keelson::proxy::dns {
namespace {

constexpr size_t kQuestion = 40, kLarge = 1200;
constexpr size_t kWhole = AmplificationGuard::kBytesPerSecond / kLarge;

// How many large answers in a row it lets through.
size_t Admitted(AmplificationGuard& guard, const IpAddress& source) {
  size_t out = 0;
  while (out < 10 * kWhole && guard.Admit(source, kQuestion, kLarge)) ++out;
  return out;
}

TEST(AmplificationGuardTest, BoundsLargeAnswersToOneSource) {
  FakeClock clock;
  AmplificationGuard guard(clock);
  const IpAddress victim = *IpAddress::Parse("10.1.0.7");
  EXPECT_EQ(Admitted(guard, victim), kWhole);
  // What does not amplify is never refused.
  EXPECT_TRUE(guard.Admit(victim, kQuestion, AmplificationGuard::kFactor * kQuestion));
  EXPECT_FALSE(guard.Admit(victim, kQuestion, AmplificationGuard::kFactor * kQuestion + 1 + kLarge));
  clock.Advance(std::chrono::milliseconds(100));
  EXPECT_NEAR(static_cast<double>(Admitted(guard, victim)), kWhole / 10.0, 1);
  clock.Advance(std::chrono::hours(1));
  EXPECT_EQ(Admitted(guard, victim), kWhole);
}

TEST(AmplificationGuardTest, OthersAreNotConcerned) {
  FakeClock clock;
  AmplificationGuard guard(clock);
  Admitted(guard, *IpAddress::Parse("10.1.0.7"));
  int refused = 0;
  for (const char* base : {"10.1.1.0", "fd00:10:1::"}) {
    for (int i = 0; i < 500; ++i) {
      if (!guard.Admit(IpAddress::Parse(base)->Plus(i), kQuestion, kLarge)) ++refused;
    }
  }
  // Those who happen to share the victim's account: one in a thousand.
  EXPECT_LE(refused, 10);
}

}  // namespace
}  // namespace keelson::proxy::dns
