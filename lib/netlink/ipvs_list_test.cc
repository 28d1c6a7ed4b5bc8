#include "lib/netlink/ipvs_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace keelson::netlink {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kHeadings[] =
    "IP Virtual Server version 1.2.1 (size=4096)\n"
    "Prot LocalAddress:Port Scheduler Flags\n"
    "  -> RemoteAddress:Port Forward Weight ActiveConn InActConn\n";

TEST(IpvsListParser, ServersAndDestinations) {
  auto found = ParseIpvsList(
      std::string(kHeadings) +
      "TCP  0A600001:0050 rr  persistent 2700000 FFFFFFFF\n"
      "  -> 0A010001:1F90      Masq    1      3          7         \n"
      "  -> 0A010002:1F90      Route   0      0          0         \n"
      "FWM  0000002A wlc  \n"
      "  -> 0A010009:1F90      Masq    1      0          0         \n"
      "UDP  [fd96:0000:0000:0000:0000:0000:0000:000a]:0035 mh \n"
      "  -> [fd01:0000:0000:0000:0000:0000:0000:0001]:0035      Masq    1      0          0         \n"
      "UDP  0A60000A:0035 rr  \n");
  ASSERT_TRUE(found) << found.error().message();
  ASSERT_EQ(found->size(), 3u);
  EXPECT_EQ(found->at(0).address.ToString(), "TCP 10.96.0.1:80");
  EXPECT_EQ(found->at(0).scheduler, "rr");
  EXPECT_TRUE(found->at(0).sticky);
  EXPECT_FALSE(found->at(1).sticky);
  ASSERT_EQ(found->at(0).destinations.size(), 2u);
  EXPECT_EQ(found->at(0).destinations[0].destination, (Destination{*IpAddress::Parse("10.1.0.1"), 8080, 1}));
  EXPECT_TRUE(found->at(0).destinations[0].translates);
  EXPECT_EQ(found->at(0).destinations[1].destination.weight, 0u);
  EXPECT_FALSE(found->at(0).destinations[1].translates);
  EXPECT_EQ(found->at(1).address.ToString(), "UDP [fd96::a]:53");
  EXPECT_EQ(found->at(1).destinations.at(0).destination.ip, *IpAddress::Parse("fd01::1"));
  EXPECT_THAT(found->at(2).destinations, IsEmpty());
  EXPECT_EQ(ParseIpvsList(kHeadings)->size(), 0u);
  EXPECT_THAT(ParseIpvsList(std::string(kHeadings) + "TCP  0A6001:0050 rr\n").error().message(),
              HasSubstr("0A6001:0050"));
}

}  // namespace
}  // namespace keelson::netlink
