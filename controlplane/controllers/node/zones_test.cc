#include "controlplane/controllers/node/zones.h"

#include <gtest/gtest.h>

#include "controlplane/controllers/testing/cluster.h"

namespace keelson::controllers {
namespace {

using namespace std::chrono_literals;

TEST(ZoneTest, StateByHowManyFail) {
  struct Case {
    int ready, not_ready;
    ZoneState want;
  };
  for (const Case& c : {Case{0, 0, ZoneState::kNormal},
                        {1, 0, ZoneState::kNormal},
                        {0, 1, ZoneState::kFullDisruption},
                        {0, 30, ZoneState::kFullDisruption},
                        {1, 2, ZoneState::kNormal},  // most of it, but few
                        {1, 3, ZoneState::kPartialDisruption},
                        {3, 3, ZoneState::kNormal},
                        {9, 11, ZoneState::kPartialDisruption},  // just the threshold
                        {10, 11, ZoneState::kNormal}}) {
    EXPECT_EQ(StateOfZone(c.ready, c.not_ready, 0.55), c.want) << c.ready << " " << c.not_ready;
  }
}

TEST(ZoneTest, RateByStateAndSize) {
  Options options;
  EXPECT_EQ(EvictionRate(ZoneState::kNormal, 10, options), 0.1);
  EXPECT_EQ(EvictionRate(ZoneState::kFullDisruption, 10, options), 0.1);
  EXPECT_EQ(EvictionRate(ZoneState::kPartialDisruption, 50, options), 0);
  EXPECT_EQ(EvictionRate(ZoneState::kPartialDisruption, 51, options), 0.01);
}

corev1::Node NodeIn(const std::string& zone, const char* ready = "True") {
  corev1::Node node = NodeNamed("x", ready);
  auto& labels = *node.mutable_metadata()->mutable_labels();
  labels["topology.kubernetes.io/region"] = "r";
  labels["topology.kubernetes.io/zone"] = zone;
  return node;
}

TEST(ZoneTest, Names) {
  EXPECT_EQ(ZoneOf(NodeNamed("n")), "");
  EXPECT_EQ(ZoneOf(NodeIn("a")), std::string("r:\0:a", 5));
  corev1::Node old = NodeNamed("n");
  (*old.mutable_metadata()->mutable_labels())["failure-domain.beta.kubernetes.io/zone"] = "a";
  EXPECT_EQ(ZoneOf(old), std::string(":\0:a", 4));
}

class ZonesTest : public ::testing::Test {
 protected:
  Zones::Mood Put(const std::string& name, const std::string& zone, const char* ready = "True") {
    corev1::Node node = NodeIn(zone, ready);
    return zones_.Update(name, &node, now_);
  }
  void PutMany(const std::string& zone, int ready, int not_ready) {
    for (int i = 0; i < ready; ++i) Put(zone + "-good-" + std::to_string(i), zone);
    for (int i = 0; i < not_ready; ++i) Put(zone + "-bad-" + std::to_string(i), zone, "False");
  }
  SteadyTime now_{1h};
  Zones zones_{Options()};
};

TEST_F(ZonesTest, OneAfterAnotherInTheOrderOfAsking) {
  PutMany("a", 9, 3);
  EXPECT_TRUE(zones_.Ask("a-bad-2", now_).now) << "one is saved up";
  Zones::Turn first = zones_.Ask("a-bad-0", now_);
  EXPECT_FALSE(first.now);
  EXPECT_EQ(first.wait, 10s);
  EXPECT_FALSE(zones_.Ask("a-bad-1", now_).wait) << "another one is before it";
  now_ += 10s;
  EXPECT_FALSE(zones_.Ask("a-bad-1", now_).now);
  Zones::Turn second = zones_.Ask("a-bad-0", now_);
  EXPECT_TRUE(second.now);
  EXPECT_EQ(second.next, "a-bad-1");
  now_ += 4s;
  EXPECT_EQ(zones_.Ask("a-bad-1", now_).wait, 6s);
  zones_.Withdraw("a-bad-1");
  now_ += 100s;
  EXPECT_TRUE(zones_.Ask("a-bad-2", now_).now);
  EXPECT_FALSE(zones_.Ask("a-bad-1", now_).now) << "never more than one is saved up";
}

TEST_F(ZonesTest, ZonesDoNotWaitForEachOther) {
  PutMany("a", 9, 2);
  PutMany("b", 9, 2);
  EXPECT_TRUE(zones_.Ask("a-bad-0", now_).now);
  EXPECT_TRUE(zones_.Ask("b-bad-0", now_).now);
  EXPECT_FALSE(zones_.Ask("a-bad-1", now_).now);
}

TEST_F(ZonesTest, AZoneThatMostlyFailsIsEmptiedSlowlyOrNotAtAll) {
  PutMany("small", 2, 8);
  PutMany("large", 40, 60);
  PutMany("gone", 0, 4);
  now_ += 1h;
  EXPECT_FALSE(zones_.Ask("small-bad-0", now_).now);
  EXPECT_TRUE(zones_.Ask("large-bad-0", now_).now);
  EXPECT_EQ(zones_.Ask("large-bad-1", now_).wait, 100s);
  EXPECT_TRUE(zones_.Ask("gone-bad-0", now_).now);
  EXPECT_EQ(zones_.Ask("gone-bad-1", now_).wait, 10s);
  // The zone recovers, and its queue continues.
  for (int i = 1; i < 8; ++i) Put("small-bad-" + std::to_string(i), "small");
  EXPECT_TRUE(zones_.Ask("small-bad-0", now_).now);
}

TEST_F(ZonesTest, AllDisruptedAndBack) {
  using Mood = Zones::Mood;
  EXPECT_EQ(Put("a", "1"), Mood::kSame);
  EXPECT_EQ(Put("b", "2"), Mood::kSame);
  EXPECT_EQ(Put("a", "1", "Unknown"), Mood::kSame);
  EXPECT_EQ(Put("b", "2", "False"), Mood::kAllDisrupted);
  EXPECT_EQ(Put("b", "2", "Unknown"), Mood::kSame);
  EXPECT_TRUE(zones_.all_disrupted());
  EXPECT_EQ(Put("c", "3"), Mood::kRecovered);
  EXPECT_EQ(zones_.Update("c", nullptr, now_), Mood::kAllDisrupted);
  EXPECT_EQ(Put("a", "1"), Mood::kRecovered);
  EXPECT_EQ(zones_.Update("a", nullptr, now_), Mood::kAllDisrupted);
  EXPECT_EQ(zones_.Update("b", nullptr, now_), Mood::kRecovered) << "no node at all is no disruption";
}

TEST_F(ZonesTest, WhoHasNotReportedOrIsExcludedDoesNotCount) {
  corev1::Node silent;
  EXPECT_EQ(zones_.Update("new", &silent, now_), Zones::Mood::kSame);
  corev1::Node excluded = NodeNamed("x", "False");
  (*excluded.mutable_metadata()->mutable_labels())["node.kubernetes.io/exclude-disruption"] = "";
  EXPECT_EQ(zones_.Update("excluded", &excluded, now_), Zones::Mood::kSame);
  EXPECT_FALSE(zones_.all_disrupted());
}

TEST_F(ZonesTest, ANodeMayMove) {
  Put("n", "a", "False");
  PutMany("a", 5, 0);
  PutMany("b", 5, 0);
  EXPECT_TRUE(zones_.Ask("n", now_).now);
  Put("n", "b", "False");
  EXPECT_TRUE(zones_.Ask("n", now_).now) << "zone b has not emptied one yet";
}

}  // namespace
}  // namespace keelson::controllers
