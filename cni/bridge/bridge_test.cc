#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include "cni/lib/plugin_fixture.h"
#include "lib/base/file.h"
#include "lib/netlink/addr.h"
#include "lib/netlink/bridge_vlan.h"
#include "lib/netlink/route.h"

namespace keelson::cni {
namespace {

using ::testing::HasSubstr;

class BridgeTest : public PluginFixture {
 protected:
  static bool Reaches(const linux::NetNs& from, const linux::NetNs& to, const std::string& address) {
    EchoServer server(to, SOCK_STREAM, 0);
    return !Ask(from, SOCK_STREAM, address, server.port()).empty();
  }
};

constexpr char kGateway[] = R"("isDefaultGateway":true,"hairpinMode":true,"ipMasq":true,"mtu":1400,)";

TEST_F(BridgeTest, AddJoinsContainersAndDelTakesThemOut) {
  Reply added = Call("bridge", "ADD", *a_, Bridge(kGateway));
  ASSERT_EQ(added.exit_code, 0) << added.output;
  AddResult result = Parse(added);
  ASSERT_EQ(result.interfaces.size(), 3u);
  EXPECT_EQ(result.interfaces[0].name, "br0");
  EXPECT_EQ(result.interfaces[2].sandbox, a_->path);
  EXPECT_EQ(result.interfaces[2].mac, "0a:58:0a:07:00:02");
  EXPECT_EQ(result.ips[0].address.ToString(), "10.7.0.2/24");
  EXPECT_EQ(result.ips[1].address.ToString(), "fd07::2/64");
  EXPECT_EQ(result.ips[0].interface, 2);
  EXPECT_EQ(result.routes.size(), 2u);

  auto host = *netlink::Socket::OpenIn(*host_);
  auto bridge = *netlink::GetLink(host, "br0");
  EXPECT_TRUE(bridge.up);
  EXPECT_EQ(bridge.mtu, 1400);
  EXPECT_EQ(bridge.mac.ToString(), result.interfaces[0].mac);
  auto inside = *netlink::Socket::OpenIn(a_->netns);
  auto eth0 = *netlink::GetLink(inside, "eth0");
  EXPECT_TRUE(eth0.up);
  EXPECT_EQ(eth0.mtu, 1400);
  EXPECT_EQ(netlink::GetLink(host, result.interfaces[1].name)->master, bridge.index);
  EXPECT_EQ(Sysctl("net/ipv4/ip_forward") + Sysctl("net/ipv6/conf/all/forwarding"), "11");
  auto table = Table(nft::Family::kInet, "keelson-cni");
  ASSERT_TRUE(table);
  EXPECT_EQ(table->chains.size(), 2u);

  std::string check = WithPrevious(Bridge(kGateway), added.output);
  Reply checked = Call("bridge", "CHECK", *a_, check);
  EXPECT_EQ(checked.exit_code, 0) << checked.output;
  ASSERT_EQ(Call("bridge", "ADD", *b_, Bridge(kGateway)).exit_code, 0);
  EXPECT_TRUE(Reaches(a_->netns, b_->netns, "10.7.0.3"));
  EXPECT_TRUE(Reaches(b_->netns, a_->netns, "fd07::2"));
  EXPECT_TRUE(Reaches(*host_, a_->netns, "10.7.0.2"));

  EXPECT_EQ(Call("bridge", "DEL", *a_, Bridge(kGateway)).exit_code, 0);
  EXPECT_EQ(Call("bridge", "DEL", *a_, Bridge(kGateway)).exit_code, 0);
  EXPECT_FALSE(netlink::GetLink(inside, "eth0"));
  EXPECT_FALSE(netlink::GetLink(host, result.interfaces[1].name));
  EXPECT_FALSE(PathExists(dir_ + "/ipam/net/10.7.0.2"));
  EXPECT_EQ(Call("bridge", "CHECK", *a_, check).exit_code, 1);
  ASSERT_TRUE(linux::RemoveNetNs(b_->path));
  EXPECT_EQ(Call("bridge", "DEL", *b_, Bridge(kGateway)).exit_code, 0);
  EXPECT_FALSE(PathExists(dir_ + "/ipam/net/10.7.0.3"));
}

TEST_F(BridgeTest, AFailedAddLeavesNothing) {
  auto host = *netlink::Socket::OpenIn(*host_);
  ASSERT_TRUE(netlink::CreateBridge(host, "br0", 0, std::nullopt));
  auto bridge = *netlink::GetLink(host, "br0");
  ASSERT_TRUE(netlink::AddAddress(host, bridge.index, *IpPrefix::Parse("192.168.9.1/24")));
  Reply refused = Call("bridge", "ADD", *a_, Bridge(kGateway));
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.output, HasSubstr("already has an IP address different from 10.7.0.1/24"));
  auto inside = *netlink::Socket::OpenIn(a_->netns);
  EXPECT_FALSE(netlink::GetLink(inside, "eth0"));
  EXPECT_FALSE(PathExists(dir_ + "/ipam/net/10.7.0.2"));

  Reply forced = Call("bridge", "ADD", *a_, Bridge(std::string(kGateway) + R"("forceAddress":true,)"));
  EXPECT_EQ(forced.exit_code, 0) << forced.output;
  Reply twice = Call("bridge", "ADD", *a_, Bridge(kGateway));
  EXPECT_EQ(twice.exit_code, 1);
  EXPECT_THAT(twice.output, HasSubstr("already"));
  EXPECT_TRUE(netlink::GetLink(inside, "eth0"));
  EXPECT_TRUE(PathExists(dir_ + "/ipam/net/10.7.0.3"));
}

TEST_F(BridgeTest, LoopbackComesUp) {
  std::string config = R"({"cniVersion":"1.0.0","name":"lo","type":"loopback"})";
  Reply added = Call("loopback", "ADD", *a_, config);
  ASSERT_EQ(added.exit_code, 0) << added.output;
  EXPECT_THAT(added.output, HasSubstr("127.0.0.1/8"));
  auto inside = *netlink::Socket::OpenIn(a_->netns);
  EXPECT_TRUE(netlink::GetLink(inside, "lo")->up);
  EXPECT_EQ(Call("loopback", "DEL", *a_, config).exit_code, 0);
  EXPECT_FALSE(netlink::GetLink(inside, "lo")->up);
}

}  // namespace
}  // namespace keelson::cni
