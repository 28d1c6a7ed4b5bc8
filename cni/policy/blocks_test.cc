#include "cni/policy/blocks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace keelson::cni::policy {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> Ranges(const char* cidr, std::initializer_list<const char*> except) {
  Block block{.cidr = *IpPrefix::Parse(cidr)};
  for (const char* text : except) block.except.push_back(*IpPrefix::Parse(text));
  std::vector<std::string> out;
  for (const IpRange& range : AddressesOf(block)) {
    out.push_back(range.first.ToString() + "-" + range.last.ToString());
  }
  return out;
}

TEST(Blocks, ExceptionsAreHoles) {
  EXPECT_THAT(Ranges("10.0.0.0/8", {}), ElementsAre("10.0.0.0-10.255.255.255"));
  EXPECT_THAT(Ranges("10.0.0.0/24", {"10.0.0.0/26", "10.0.0.128/32"}),
              ElementsAre("10.0.0.64-10.0.0.127", "10.0.0.129-10.0.0.255"));
  EXPECT_THAT(Ranges("10.0.0.0/24", {"10.0.0.64/26", "10.0.0.64/30", "10.0.0.192/26"}),
              ElementsAre("10.0.0.0-10.0.0.63", "10.0.0.128-10.0.0.191"));
  EXPECT_THAT(Ranges("10.0.0.0/24", {"10.0.0.0/16"}), IsEmpty());
  EXPECT_THAT(Ranges("10.0.0.0/24", {"10.0.1.0/24", "fd00::/8"}), ElementsAre("10.0.0.0-10.0.0.255"));
  EXPECT_THAT(Ranges("0.0.0.0/0", {"255.255.255.255/32", "0.0.0.0/32"}),
              ElementsAre("0.0.0.1-255.255.255.254"));
  EXPECT_THAT(Ranges("::/0", {"fd00::/8"}), ElementsAre("::-fcff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
                                                        "fe00::-ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"));
}

TEST(Blocks, RangesNeverOverlap) {
  auto range = [](const char* first, const char* last) {
    return IpRange{*IpAddress::Parse(first), *IpAddress::Parse(last)};
  };
  auto merged = Merged({range("10.0.1.0", "10.0.2.0"), range("10.0.0.0", "10.0.1.5"),
                        range("10.0.1.1", "10.0.1.2"), range("10.1.0.0", "10.1.0.0")});
  ASSERT_EQ(merged.size(), 2u);
  EXPECT_EQ(merged[0].first.ToString() + "-" + merged[0].last.ToString(), "10.0.0.0-10.0.2.0");
  EXPECT_EQ(merged[1].first.ToString(), "10.1.0.0");
  EXPECT_THAT(
      Merged(std::vector<PortRange>{{6, 80, 90}, {6, 91, 95}, {17, 80, 80}, {6, 0, 65535}, {6, 5, 5}}),
      ElementsAre(PortRange{6, 0, 65535}, PortRange{17, 80, 80}));
}

}  // namespace
}  // namespace keelson::cni::policy
