#include "lib/netlink/tc/shaping.h"

#include <gtest/gtest.h>

#include "lib/linux/netns.h"
#include "lib/netlink/addr.h"
#include "lib/netlink/bridge_vlan.h"
#include "lib/netlink/route_lookup.h"

namespace keelson::netlink {
namespace {

#define ASSERT_DONE(expr)                                    \
  do {                                                       \
    auto done = (expr);                                      \
    ASSERT_TRUE(done.has_value()) << done.error().message(); \
  } while (false)

class ShapingTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto netns = linux::NetNs::Make();
    if (!netns) GTEST_SKIP() << netns.error().message();
    netns_ = std::make_unique<linux::NetNs>(std::move(*netns));
    socket_ = std::make_unique<Socket>(*Socket::OpenIn(*netns_));
    ASSERT_DONE(CreateVeth(*socket_, {.name = "v0", .up = true}, {.name = "v1"}, 0));
    link_ = *GetLink(*socket_, "v0");
    ASSERT_DONE(netlink::SetUp(*socket_, GetLink(*socket_, "v1")->index));
  }

  std::unique_ptr<linux::NetNs> netns_;
  std::unique_ptr<Socket> socket_;
  Link link_;
};

TEST_F(ShapingTest, TokenBucketIsSetReplacedAndReadBack) {
  EXPECT_FALSE(*GetTokenBucket(*socket_, link_.index));
  for (uint64_t rate : {125000ull, 125000000ull, 12500000000ull}) {
    ASSERT_DONE(SetTokenBucket(*socket_, link_.index, {.rate = rate, .burst = 64000, .limit = 100000}));
    auto found = *GetTokenBucket(*socket_, link_.index);
    ASSERT_TRUE(found) << rate;
    EXPECT_EQ(found->rate, rate);
    EXPECT_EQ(found->limit, 100000u);
    EXPECT_NEAR(found->burst, 64000.0, 1000) << rate;
  }
}

TEST_F(ShapingTest, ReceivedPacketsAreRedirected) {
  EXPECT_EQ(*GetRedirection(*socket_, link_.index), 0);
  ASSERT_DONE(CreateIfb(*socket_, "ifb-a", 1400, "an alias"));
  Link ifb = *GetLink(*socket_, "ifb-a");
  EXPECT_EQ(ifb.kind, "ifb");
  EXPECT_EQ(ifb.alias, "an alias");
  EXPECT_EQ(ifb.mtu, 1400);
  EXPECT_TRUE(ifb.up);
  auto again = CreateIfb(*socket_, "ifb-a", 1400, "");
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code(), Code::kAlreadyExists);
  for (int round = 0; round < 2; ++round) {
    ASSERT_DONE(RedirectReceived(*socket_, link_.index, ifb.index));
    EXPECT_EQ(*GetRedirection(*socket_, link_.index), ifb.index);
  }
}

TEST_F(ShapingTest, RoutesAreLookedUp) {
  ASSERT_DONE(AddAddress(*socket_, link_.index, *IpPrefix::Parse("10.3.0.1/24")));
  auto found = LookUpRoute(*socket_, *IpAddress::Parse("10.3.0.7"));
  ASSERT_TRUE(found) << found.error().message();
  EXPECT_EQ(found->link_index, link_.index);
  EXPECT_EQ(found->source->ToString(), "10.3.0.1");
  EXPECT_FALSE(found->gateway);
  EXPECT_FALSE(LookUpRoute(*socket_, *IpAddress::Parse("192.0.2.1")));
}

TEST_F(ShapingTest, PortsOfABridgeSayHowTheyAreSet) {
  ASSERT_DONE(CreateBridge(*socket_, "br0", 0, std::nullopt));
  Link bridge = *GetLink(*socket_, "br0");
  EXPECT_FALSE(bridge.vlan_filtering);
  ASSERT_DONE(ChangeLink(*socket_, link_.index, {.master = bridge.index}));
  EXPECT_FALSE(GetLink(*socket_, "v0")->hairpin);
  ASSERT_DONE(ChangePort(*socket_, link_.index, {.hairpin = true, .isolated = true}));
  EXPECT_TRUE(GetLink(*socket_, "v0")->hairpin);
  EXPECT_TRUE(GetLink(*socket_, "v0")->isolated);

  Result<> filtering = SetVlanFiltering(*socket_, bridge.index, true);
  if (!filtering && filtering.error().errnum() == EOPNOTSUPP) GTEST_SKIP() << filtering.error().message();
  ASSERT_DONE(filtering);
  EXPECT_TRUE(GetLink(*socket_, "br0")->vlan_filtering);
  ASSERT_DONE(AddPortVlan(*socket_, link_.index, {.id = 100, .pvid = true, .untagged = true}));
  ASSERT_DONE(AddPortVlan(*socket_, link_.index, {.id = 200}));
  ASSERT_DONE(DeletePortVlan(*socket_, link_.index, 1));
  EXPECT_EQ(*ListPortVlans(*socket_, link_.index),
            (std::vector<PortVlan>{{.id = 100, .pvid = true, .untagged = true}, {.id = 200}}));
}

}  // namespace
}  // namespace keelson::netlink
