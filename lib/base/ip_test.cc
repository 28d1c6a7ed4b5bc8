#include "lib/base/ip.h"

#include <gtest/gtest.h>

namespace keelson {
namespace {

TEST(IpAddress, ParsesAndPrints) {
  for (const char* text : {"10.0.0.1", "255.255.255.255", "::", "::1", "fd00:1::2", "2001:db8::1:0:0:1"}) {
    auto parsed = IpAddress::Parse(text);
    ASSERT_TRUE(parsed) << text;
    EXPECT_EQ(parsed->ToString(), text);
    EXPECT_EQ(IpAddress::FromBytes(parsed->bytes()), *parsed);
  }
  for (const char* text : {"", "10.0.0", "10.0.0.256", "010.0.0.1", "fe80::1%eth0", "1.2.3.4/8", "x"}) {
    EXPECT_FALSE(IpAddress::Parse(text)) << text;
  }
}

TEST(IpAddress, CountsAcrossOctets) {
  struct {
    const char* from;
    int64_t by;
    const char* to;
  } cases[] = {{"10.0.0.255", 1, "10.0.1.0"},         {"10.0.1.0", -1, "10.0.0.255"},
               {"255.255.255.255", 1, "0.0.0.0"},     {"10.0.0.0", 65536, "10.1.0.0"},
               {"fd00::ffff:ffff", 1, "fd00::1:0:0"}, {"fd00::1:0:0", -1, "fd00::ffff:ffff"}};
  for (const auto& c : cases) EXPECT_EQ(IpAddress::Parse(c.from)->Plus(c.by).ToString(), c.to);
}

TEST(IpPrefix, NetworkLastAndContains) {
  auto p = *IpPrefix::Parse("10.1.2.3/20");
  EXPECT_EQ(p.Network().ToString(), "10.1.0.0");
  EXPECT_EQ(p.Last().ToString(), "10.1.15.255");
  EXPECT_TRUE(p.Contains(*IpAddress::Parse("10.1.15.1")));
  EXPECT_FALSE(p.Contains(*IpAddress::Parse("10.1.16.1")));
  EXPECT_FALSE(p.Contains(*IpAddress::Parse("::1")));
  EXPECT_EQ(IpPrefix::Parse("fd00::/64")->Last().ToString(), "fd00::ffff:ffff:ffff:ffff");
  for (const char* text :
       {"10.0.0.0", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/08", "10.0.0.0/", "fd00::/129"}) {
    EXPECT_FALSE(IpPrefix::Parse(text)) << text;
  }
}

}  // namespace
}  // namespace keelson
