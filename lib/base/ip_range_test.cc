#include "lib/base/ip_range.h"

#include <gtest/gtest.h>

#include <set>

namespace keelson {
namespace {

std::string Parsed(const char* text) {
  auto range = IpRange::Parse(text);
  return range ? range->first.ToString() + " to " + range->last.ToString() : range.error().message();
}

TEST(IpRangeTest, Parses) {
  const std::pair<const char*, const char*> cases[] = {
      {"192.0.2.10-192.0.2.12", "192.0.2.10 to 192.0.2.12"},
      {"192.0.2.7", "192.0.2.7 to 192.0.2.7"},
      {"192.0.2.0/29", "192.0.2.1 to 192.0.2.6"},
      {"192.0.2.4/31", "192.0.2.4 to 192.0.2.5"},
      {"fd00::/126", "fd00:: to fd00::3"},
      {"fd00::1-fd00::9", "fd00::1 to fd00::9"},
      {"192.0.2.12-192.0.2.10", "invalid address range \"192.0.2.12-192.0.2.10\""},
      {"192.0.2.1-fd00::1", "invalid address range \"192.0.2.1-fd00::1\""},
      {"192.0.2.0/33", "invalid address range \"192.0.2.0/33\""},
      {"", "invalid address range \"\""},
      {"-", "invalid address range \"-\""},
  };
  for (const auto& [text, want] : cases) EXPECT_EQ(Parsed(text), want);
}

TEST(AddressPoolTest, GivesWhatIsFree) {
  auto pool = AddressPool::Parse({"192.0.2.10-192.0.2.11", "fd00::1", "192.0.2.20"});
  ASSERT_TRUE(pool);
  std::set<IpAddress> taken;
  auto next = [&](bool v4) -> std::string {
    auto free = pool->FirstFree(v4, [&](const IpAddress& ip) { return taken.contains(ip); });
    if (!free) return "none";
    EXPECT_TRUE(pool->Contains(*free));
    taken.insert(*free);
    return free->ToString();
  };
  for (const char* want : {"192.0.2.10", "192.0.2.11", "192.0.2.20", "none"}) EXPECT_EQ(next(true), want);
  for (const char* want : {"fd00::1", "none"}) EXPECT_EQ(next(false), want);
  EXPECT_FALSE(pool->Contains(*IpAddress::Parse("192.0.2.12")));
}

TEST(AddressPoolTest, EndsAtTheLastAddressThereIs) {
  auto pool = AddressPool::Parse({"255.255.255.254-255.255.255.255"});
  ASSERT_TRUE(pool);
  EXPECT_FALSE(pool->FirstFree(true, [](const IpAddress&) { return true; }));
}

TEST(AddressPoolTest, RefusesOverlaps) {
  EXPECT_EQ(AddressPool::Parse({"192.0.2.0/28", "192.0.2.9"}).error().message(),
            "address range \"192.0.2.9\" overlaps another");
}

}  // namespace
}  // namespace keelson
