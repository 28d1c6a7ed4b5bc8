#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <functional>

#include "lib/linux/netns.h"
#include "lib/netlink/addr.h"
#include "lib/netlink/link.h"
#include "lib/netlink/neigh.h"
#include "lib/netlink/route.h"
#include "lib/netlink/xdp_features.h"
#include "lib/netlink/xfrm.h"

namespace keelson::netlink {
namespace {

IpPrefix Prefix(const char* text) { return *IpPrefix::Parse(text); }
IpAddress Ip(const char* text) { return *IpAddress::Parse(text); }

class NetlinkTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto a = linux::NetNs::Make();
    auto b = linux::NetNs::Make();
    if (!a || !b) GTEST_SKIP() << a.error().message();
    netns_ = std::make_unique<linux::NetNs>(std::move(*a));
    other_netns_ = std::make_unique<linux::NetNs>(std::move(*b));
    socket_ = std::make_unique<Socket>(*Socket::OpenIn(*netns_));
    other_ = std::make_unique<Socket>(*Socket::OpenIn(*other_netns_));
  }
  std::unique_ptr<linux::NetNs> netns_, other_netns_;
  std::unique_ptr<Socket> socket_, other_;
};

template <typename T>
Result<T> InNamespace(const linux::NetNs& netns, const std::function<Result<T>()>& body) {
  Result<T> out = Error(Code::kInternal, "not run");
  KEELSON_RETURN_IF_ERROR(netns.Run([&]() -> Result<> {
    KEELSON_ASSIGN_OR_RETURN(out, body());
    return {};
  }));
  return out;
}

#define ASSERT_DONE(expr)                                    \
  do {                                                       \
    auto done = (expr);                                      \
    ASSERT_TRUE(done.has_value()) << done.error().message(); \
  } while (false)

TEST_F(NetlinkTest, VethFromABridgeIntoAnotherNamespace) {
  auto mac = *MacAddress::Parse("0a:58:0a:00:00:05");
  ASSERT_DONE(CreateBridge(*socket_, "br0", 1400, std::nullopt));
  auto bridge = *GetLink(*socket_, "br0");
  EXPECT_EQ(bridge.kind, "bridge");
  EXPECT_EQ(bridge.mtu, 1400);
  EXPECT_FALSE(bridge.up);
  ASSERT_DONE(ChangeLink(*socket_, bridge.index, {.up = true, .promisc = true}));
  ASSERT_DONE(CreateVeth(*socket_, {.name = "veth1", .master = bridge.index, .up = true},
                         {.name = "eth0", .mac = mac, .netns_fd = other_netns_->fd()}, 1400));
  auto host = *GetLink(*socket_, "veth1");
  auto peer = *GetLink(*other_, "eth0");
  EXPECT_EQ(host.kind, "veth");
  EXPECT_EQ(host.master, bridge.index);
  EXPECT_EQ(host.peer_index, peer.index);
  EXPECT_EQ(peer.mac, mac);
  EXPECT_EQ(peer.mtu, 1400);
  EXPECT_FALSE(peer.up);
  EXPECT_TRUE(GetLink(*socket_, "br0")->promisc);
  ASSERT_DONE(ChangePort(*socket_, host.index, {.hairpin = true, .isolated = true}));

  auto again = CreateVeth(*socket_, {.name = "veth1"}, {.name = "x"}, 0);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code(), Code::kAlreadyExists);
  EXPECT_EQ(again.error().errnum(), EEXIST);
  EXPECT_THAT(again.error().message(), ::testing::HasSubstr("create veth veth1: File exists"));

  EXPECT_TRUE(*DeleteLink(*other_, "eth0"));
  EXPECT_FALSE(*DeleteLink(*other_, "eth0"));
  auto gone = GetLink(*socket_, "veth1");
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().code(), Code::kNotFound);
}

TEST_F(NetlinkTest, RenameMoveAndList) {
  ASSERT_DONE(CreateVeth(*socket_, {.name = "a"}, {.name = "b"}, 0));
  int index = GetLink(*socket_, "b")->index;
  ASSERT_DONE(ChangeLink(*socket_, index, {.mtu = 1300, .name = "c", .netns_fd = other_netns_->fd()}));
  auto moved = GetLink(*other_, "c");
  ASSERT_TRUE(moved) << moved.error().message();
  EXPECT_EQ(moved->mtu, 1300);
  std::vector<std::string> names;
  auto links = *ListLinks(*socket_);
  for (const Link& link : links) names.push_back(link.name);
  EXPECT_THAT(names, ::testing::UnorderedElementsAre("lo", "a"));
}

TEST_F(NetlinkTest, AddressesRoutesAndNeighbours) {
  ASSERT_DONE(CreateVeth(*socket_, {.name = "a", .up = true}, {.name = "b"}, 0));
  ASSERT_DONE(netlink::SetUp(*socket_, GetLink(*socket_, "b")->index));
  int index = GetLink(*socket_, "a")->index;
  ASSERT_DONE(AddAddress(*socket_, index, Prefix("10.1.0.1/24")));
  ASSERT_DONE(AddAddress(*socket_, index, Prefix("fd00::1/64")));
  EXPECT_EQ(AddAddress(*socket_, index, Prefix("10.1.0.1/24")).error().code(), Code::kAlreadyExists);
  std::vector<std::string> found;
  auto addresses = *ListAddresses(*socket_, index);
  for (const Address& a : addresses) {
    if (!a.link_scope) found.push_back(a.prefix.ToString());
  }
  EXPECT_THAT(found, ::testing::ElementsAre("10.1.0.1/24", "fd00::1/64"));

  Route route{.destination = Prefix("0.0.0.0/0"), .gateway = Ip("10.1.0.254"), .mtu = 1350};
  Route route6{.destination = Prefix("fd01::/64"), .gateway = Ip("fd00::fe"), .link_index = index};
  ASSERT_DONE(AddRoute(*socket_, route));
  ASSERT_DONE(AddRoute(*socket_, route6));
  EXPECT_EQ(AddRoute(*socket_, route).error().code(), Code::kAlreadyExists);
  route.mtu = 1250;
  ASSERT_DONE(ReplaceRoute(*socket_, route));
  int seen = 0;
  auto routes = *ListRoutes(*socket_);
  for (const Route& r : routes) {
    if (r.destination == route.destination) {
      ++seen;
      EXPECT_EQ(r.gateway, route.gateway);
      EXPECT_EQ(r.mtu, 1250);
    }
    if (r.destination == route6.destination) ++seen;
  }
  EXPECT_EQ(seen, 2);
  ASSERT_DONE(DeleteRoute(*socket_, route));
  EXPECT_EQ(DeleteRoute(*socket_, route).error().code(), Code::kNotFound);

  Neighbor neighbor{.link_index = index,
                    .address = Ip("10.1.0.7"),
                    .mac = *MacAddress::Parse("02:00:00:00:00:07"),
                    .permanent = true};
  ASSERT_DONE(ReplaceNeighbor(*socket_, neighbor));
  auto listed = *ListNeighbors(*socket_, index);
  bool present = false;
  for (const Neighbor& n : listed) {
    present |= n.address == neighbor.address && n.mac == neighbor.mac && n.permanent;
  }
  EXPECT_TRUE(present);
  EXPECT_TRUE(*DeleteNeighbor(*socket_, index, neighbor.address));
  EXPECT_FALSE(*DeleteNeighbor(*socket_, index, neighbor.address));
  ASSERT_DONE(DeleteAddress(*socket_, index, Prefix("10.1.0.1/24")));
}

TEST(MacAddress, ParsesAndPrints) {
  EXPECT_EQ(MacAddress::Parse("0A:58:0a:01:02:ff")->ToString(), "0a:58:0a:01:02:ff");
  for (const char* text : {"", "0a:58", "0a:58:0a:01:02:ff:00", "zz:58:0a:01:02:03"}) {
    EXPECT_FALSE(MacAddress::Parse(text)) << text;
  }
}

TEST_F(NetlinkTest, PoliciesComeAndGoBeforeWhoWatches) {
  auto monitor = InNamespace<PolicyMonitor>(*netns_, [] { return PolicyMonitor::Open(); });
  if (!monitor && monitor.error().errnum() == EPROTONOSUPPORT) GTEST_SKIP() << "a kernel without IPsec";
  ASSERT_TRUE(monitor) << monitor.error().message();
  auto socket = InNamespace<Socket>(*netns_, [] { return Socket::OpenXfrm(); });
  ASSERT_TRUE(socket) << socket.error().message();
  EXPECT_EQ(monitor->Wait({}, std::chrono::milliseconds(1)).error().code(), Code::kTimeout);
  const XfrmPolicy policy{
      .source = Prefix("10.1.0.0/24"), .destination = Prefix("10.2.0.0/24"), .block = true};
  for (bool there : {true, false}) {
    if (there) {
      ASSERT_DONE(ReplacePolicy(*socket, policy));
    } else {
      ASSERT_DONE(DeletePolicy(*socket, policy));
    }
    auto changes = monitor->Wait({}, std::chrono::seconds(10));
    ASSERT_TRUE(changes) << changes.error().message();
    EXPECT_GE(*changes, 1u);
  }
}

TEST_F(NetlinkTest, DriversSayWhatTheyCan) {
  auto generic = InNamespace<Socket>(*netns_, [] { return Socket::OpenGeneric(); });
  ASSERT_TRUE(generic) << generic.error().message();
  ASSERT_DONE(CreateVeth(*socket_, {.name = "veth1", .up = true}, {.name = "veth2"}, 0));
  ASSERT_DONE(CreateBridge(*socket_, "br0", 0, std::nullopt));
  auto veth = XdpFeatures(*generic, GetLink(*socket_, "veth1")->index);
  if (!veth && veth.error().Is(Code::kUnimplemented)) GTEST_SKIP() << veth.error().message();
  ASSERT_TRUE(veth) << veth.error().message();
  EXPECT_EQ(*veth & (kXdpBasic | kXdpRedirect | kXdpReceive), uint64_t{kXdpBasic | kXdpRedirect})
      << "the other end takes no frames";
  EXPECT_EQ(XdpFeatures(*generic, GetLink(*socket_, "br0")->index).value_or(99), 0u);
  EXPECT_EQ(XdpFeatures(*generic, 4711).error().code(), Code::kNotFound);
}

}  // namespace
}  // namespace keelson::netlink
