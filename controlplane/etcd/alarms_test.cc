// How the server reports etcd's alarms.
#include "controlplane/etcd/alarms.h"

#include <gmock/gmock.h>

#include "controlplane/etcd/testing/test_etcd.h"

namespace keelson::etcd {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> Reasons(const std::vector<AlarmNews>& news) {
  std::vector<std::string> out;
  for (const AlarmNews& one : news) out.push_back(one.reason);
  return out;
}

TEST(AlarmJudge, EachChangeIsToldOnce) {
  AlarmJudge judge(0);
  EXPECT_THAT(judge.Look({}, 1), IsEmpty());
  const std::vector<AlarmNews> news = judge.Look({{0xa1, "NOSPACE"}}, 1);
  ASSERT_THAT(Reasons(news), ElementsAre("EtcdAlarmRaised"));
  EXPECT_TRUE(news[0].warning);
  EXPECT_THAT(news[0].message, testing::StartsWith("etcd member a1 has reached its quota (NOSPACE)"));
  EXPECT_THAT(judge.Look({{0xa1, "NOSPACE"}}, 1), IsEmpty());
  EXPECT_THAT(Reasons(judge.Look({{0xa1, "NOSPACE"}, {0xa2, "NOSPACE"}, {0xa1, "CORRUPT"}}, 1)),
              ElementsAre("EtcdAlarmRaised", "EtcdAlarmRaised"));
  const std::vector<AlarmNews> over = judge.Look({{0xa2, "NOSPACE"}, {0xa1, "CORRUPT"}}, 1);
  ASSERT_THAT(Reasons(over), ElementsAre("EtcdAlarmEnded"));
  EXPECT_FALSE(over[0].warning);
  EXPECT_EQ(over[0].message, "the alarm NOSPACE of etcd member a1 has ended");
}

TEST(AlarmJudge, TheQuotaIsToldBeforeItIsReached) {
  AlarmJudge judge(1000);
  EXPECT_THAT(judge.Look({}, 800), IsEmpty());
  EXPECT_THAT(Reasons(judge.Look({}, 801)), ElementsAre("EtcdNearQuota"));
  EXPECT_THAT(judge.Look({}, 790), IsEmpty());
  EXPECT_THAT(judge.Look({}, 900), IsEmpty());
  EXPECT_THAT(judge.Look({}, 600), IsEmpty());
  EXPECT_THAT(Reasons(judge.Look({}, 900)), ElementsAre("EtcdNearQuota"));
}

TEST(AlarmFollower, AsksEtcd) {
  if (!TestEtcd::Available()) GTEST_SKIP() << "no etcd in PATH";
  TestEtcd etcd;
  ClientOptions options = etcd.supervisor().client_options();
  const Result<std::vector<Alarm>> alarms = AlarmFollower(options, 0).Alarms();
  ASSERT_TRUE(alarms) << alarms.error().message();
  EXPECT_THAT(*alarms, IsEmpty());
  options.endpoints = {"unix:///nonexistent/etcd:0"};
  EXPECT_FALSE(AlarmFollower(options, 0).Alarms());
}

}  // namespace
}  // namespace keelson::etcd
