#include "proxy/serving/health.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace keelson::proxy {
namespace {

TEST(Health, IsWellWhileChangesGetThroughInTime) {
  FakeClock clock;
  Health health(std::chrono::seconds(60), clock);
  EXPECT_TRUE(health.Healthy());  // starting up
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
  EXPECT_THAT(health.Describe(false), ::testing::EndsWith(R"(, "nodeEligible": false})"));
  EXPECT_THAT(health.Describe(true),
              ::testing::MatchesRegex(
                  R"(\{"lastUpdated": "[0-9 :.-]+ \+0000 UTC","currentTime": "[0-9 :.-]+ \+0000 UTC"\})"));
}

TEST(HealthCheckNodePort, AnswersInUpstreamsForm) {
  EXPECT_EQ(HealthCheckAnswer("default/web", 2, true),
            "{\n\t\"service\": {\n\t\t\"namespace\": \"default\",\n\t\t\"name\": \"web\"\n\t},\n"
            "\t\"localEndpoints\": 2,\n\t\"serviceProxyHealthy\": true\n}");
}

}  // namespace
}  // namespace keelson::proxy
