#include "proxy/dns/cache.h"

#include <gtest/gtest.h>

#include "proxy/dns/testing/messages.h"

namespace keelson::proxy::dns {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

std::shared_ptr<const StoredAnswer> Answer(int ttl, bool negative = false, size_t size = 100) {
  auto out = std::make_shared<StoredAnswer>();
  out->wire = std::string(size, 'x');
  out->ttl = seconds(ttl);
  out->negative = negative;
  out->cacheable = true;
  return out;
}

Question Ask(const std::string& name, uint16_t type = kTypeA) { return {*ParseName(name), type}; }

TEST(CacheTest, KeepsAnswersForTheirTtl) {
  FakeClock clock;
  Cache cache({}, clock);
  cache.Put(Ask("a"), Answer(10));
  cache.Put(Ask("b"), Answer(0));
  auto failure = std::make_shared<StoredAnswer>(*Answer(10));
  failure->cacheable = false;
  cache.Put(Ask("c"), failure);
  EXPECT_EQ(cache.Find(Ask("b")).answer, nullptr);
  EXPECT_EQ(cache.Find(Ask("c")).answer, nullptr);
  clock.Advance(seconds(9));
  EXPECT_EQ(cache.Find(Ask("a")).age, seconds(9));
  EXPECT_NE(cache.Find(Ask("a")).answer, nullptr);
  clock.Advance(seconds(1));
  EXPECT_EQ(cache.Find(Ask("a")).answer, nullptr);
}

TEST(CacheTest, TellsQuestionsApart) {
  FakeClock clock;
  Cache cache({}, clock);
  cache.Put(Ask("a"), Answer(10));
  Question dnssec = Ask("a");
  dnssec.dnssec_ok = true;
  EXPECT_EQ(cache.Find(dnssec).answer, nullptr);
  EXPECT_EQ(cache.Find(Ask("a", kTypeAaaa)).answer, nullptr);
  EXPECT_NE(cache.Find(Ask("a")).answer, nullptr);
}

TEST(CacheTest, BoundsTtls) {
  FakeClock clock;
  Cache cache({.max_ttl = seconds(60), .max_negative_ttl = seconds(30)}, clock);
  cache.Put(Ask("a"), Answer(1000));
  cache.Put(Ask("b"), Answer(1000, true));
  clock.Advance(seconds(30));
  EXPECT_NE(cache.Find(Ask("a")).answer, nullptr);
  EXPECT_EQ(cache.Find(Ask("b")).answer, nullptr);
  clock.Advance(seconds(30));
  EXPECT_EQ(cache.Find(Ask("a")).answer, nullptr);
}

TEST(CacheTest, KeepsStaleAnswersForBadDays) {
  FakeClock clock;
  Cache cache({.stale_for = minutes(10)}, clock);
  cache.Put(Ask("a"), Answer(10));
  clock.Advance(seconds(10) + minutes(10) - seconds(1));
  EXPECT_NE(cache.FindStale(Ask("a")).answer, nullptr);
  clock.Advance(seconds(1));
  EXPECT_EQ(cache.FindStale(Ask("a")).answer, nullptr);
  EXPECT_EQ(cache.bytes(), 0u);
}

TEST(CacheTest, ForgetsTheLeastRecentlyUsed) {
  FakeClock clock;
  Cache cache({.max_bytes = 20000}, clock);
  cache.Put(Ask("kept"), Answer(100, false, 1000));
  for (int i = 0; i < 100; ++i) {
    ASSERT_NE(cache.Find(Ask("kept")).answer, nullptr) << i;
    cache.Put(Ask("n" + std::to_string(i)), Answer(100, false, 1000));
    ASSERT_LE(cache.bytes(), 20000u);
  }
  EXPECT_EQ(cache.Find(Ask("n0")).answer, nullptr);
  EXPECT_NE(cache.Find(Ask("n99")).answer, nullptr);
  cache.Put(Ask("huge"), Answer(100, false, 30000));
  EXPECT_EQ(cache.bytes(), 0u);
}

}  // namespace
}  // namespace keelson::proxy::dns
