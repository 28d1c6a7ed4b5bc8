#include "proxy/health.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace keelson::proxy {
namespace {

TEST(Health, IsWellWhileChangesGetThroughInTime) {
  FakeClock clock;
  Health health(std::chrono::seconds(60), clock);
  EXPECT_FALSE(health.Healthy());  // nothing is in the kernel yet
  health.Queued();
  health.Synced();
  EXPECT_TRUE(health.Healthy());
  clock.Advance(std::chrono::hours(1));
  EXPECT_TRUE(health.Healthy());  // nothing to do is fine
  health.Queued();
  clock.Advance(std::chrono::seconds(59));
  health.Queued();
  EXPECT_TRUE(health.Live());
  clock.Advance(std::chrono::seconds(1));
  EXPECT_FALSE(health.Live());
  EXPECT_FALSE(health.Healthy());
  health.Synced();
  EXPECT_TRUE(health.Healthy());
  health.SetNodeEligible(false);
  EXPECT_TRUE(health.Live());
  EXPECT_FALSE(health.Healthy());
  EXPECT_THAT(health.Describe(), ::testing::HasSubstr("\"nodeEligible\": false"));
}

}  // namespace
}  // namespace keelson::proxy
