#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "cni/lib/json.h"
#include "cni/lib/testing/plugin_fixture.h"
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

TEST_F(BridgeTest, PortsAreSetAsConfigured) {
  const char* fields = R"("hairpinMode":true,"portIsolation":true,"isGateway":true,)";
  std::string added = Join(*a_, fields);
  AddResult result = Parse({0, added});
  auto host = Routing(*host_);
  netlink::Link port = *netlink::GetLink(host, result.interfaces[1].name);
  EXPECT_TRUE(port.hairpin);
  EXPECT_TRUE(port.isolated);
  EXPECT_TRUE(result.routes.empty());
  std::string check = WithPrevious(Bridge(fields), added);
  EXPECT_EQ(Call("bridge", "CHECK", *a_, check).exit_code, 0);
  ASSERT_TRUE(netlink::ChangePort(host, port.index, {.hairpin = false}));
  EXPECT_THAT(Call("bridge", "CHECK", *a_, check).output, HasSubstr("is not in hairpin mode"));
  ASSERT_TRUE(netlink::ChangePort(host, port.index, {.hairpin = true, .isolated = false}));
  EXPECT_THAT(Call("bridge", "CHECK", *a_, check).output, HasSubstr("is not isolated"));
}

TEST_F(BridgeTest, IsolatedContainersReachTheHostAndNotEachOther) {
  const char* fields = R"("portIsolation":true,"isDefaultGateway":true,)";
  Join(*a_, fields);
  Join(*b_, fields);
  EXPECT_TRUE(Reaches(*host_, a_->netns, "10.7.0.2"));
  EXPECT_TRUE(Reaches(*host_, b_->netns, "10.7.0.3"));
  EchoServer server(a_->netns, SOCK_STREAM, 0);
  EXPECT_EQ(Ask(b_->netns, SOCK_STREAM, "10.7.0.2", server.port(), 300), "");
}

TEST_F(BridgeTest, PromiscuousBridge) {
  const char* fields = R"("promiscMode":true,)";
  std::string added = Join(*a_, fields);
  auto host = Routing(*host_);
  netlink::Link bridge = *netlink::GetLink(host, "br0");
  EXPECT_TRUE(bridge.promisc);
  ASSERT_TRUE(netlink::ChangeLink(host, bridge.index, {.promisc = false}));
  EXPECT_THAT(Call("bridge", "CHECK", *a_, WithPrevious(Bridge(fields), added)).output,
              HasSubstr("is not promiscuous"));
}

TEST_F(BridgeTest, SendersKeepTheirMacAddress) {
  const char* fields = R"("macspoofchk":true,"isDefaultGateway":true,)";
  std::string added = Join(*a_, fields);
  Join(*b_, fields);
  std::string check = WithPrevious(Bridge(fields), added);
  EXPECT_EQ(Call("bridge", "CHECK", *a_, check).exit_code, 0);
  EXPECT_TRUE(Reaches(a_->netns, b_->netns, "10.7.0.3"));
  auto inside = Routing(a_->netns);
  netlink::Link eth0 = *netlink::GetLink(inside, "eth0");
  ASSERT_TRUE(
      netlink::ChangeLink(inside, eth0.index, {.mac = *netlink::MacAddress::Parse("0a:00:00:00:00:99")}));
  EchoServer server(b_->netns, SOCK_STREAM, 0);
  EXPECT_EQ(Ask(a_->netns, SOCK_STREAM, "10.7.0.3", server.port(), 300), "");
  EXPECT_EQ(Call("bridge", "CHECK", *a_, check).exit_code, 1);
  ASSERT_TRUE(netlink::ChangeLink(inside, eth0.index, {.mac = eth0.mac}));
  EXPECT_NE(Ask(a_->netns, SOCK_STREAM, "10.7.0.3", server.port()), "");

  EXPECT_EQ(Call("bridge", "DEL", *a_, Bridge(fields)).exit_code, 0);
  auto table = Table(nft::Family::kBridge, "keelson-cni");
  ASSERT_TRUE(table);
  EXPECT_EQ(table->sets["senders"].elements.size(), 1u);
  EXPECT_EQ(table->sets["checked-ports"].elements.size(), 1u);
  Reply gc = Call("bridge", "GC", *a_, WithField(Bridge(fields), "cni.dev/valid-attachments", "[]"));
  EXPECT_EQ(gc.exit_code, 0) << gc.output;
  EXPECT_TRUE(Table(nft::Family::kBridge, "keelson-cni")->sets["senders"].elements.empty());
  EXPECT_FALSE(PathExists(Ipam() + "/10.7.0.3"));
}

TEST_F(BridgeTest, OutgoingTrafficTakesTheHostsAddress) {
  auto outside = Outside();
  Join(*a_, R"("isDefaultGateway":true,"ipMasq":true,)");
  EchoServer server(*outside, SOCK_STREAM, 0), udp(*outside, SOCK_DGRAM, 0);
  EXPECT_EQ(Ask(a_->netns, SOCK_STREAM, "192.0.2.2", server.port()), "192.0.2.1");
  EXPECT_EQ(Ask(a_->netns, SOCK_DGRAM, "192.0.2.2", udp.port()), "192.0.2.1");
}

TEST_F(BridgeTest, DisabledInterfaceStaysDown) {
  std::string config = BridgeWith(R"("disableContainerInterface":true,)", "{}");
  AddResult result = Parse(Call("bridge", "ADD", *a_, config));
  EXPECT_TRUE(result.ips.empty());
  ASSERT_EQ(result.interfaces.size(), 3u);
  auto inside = Routing(a_->netns);
  EXPECT_FALSE(netlink::GetLink(inside, "eth0")->up);
  Parse(Call("bridge", "ADD", *b_, BridgeWith("", "{}")));  // layer 2 only
  auto other = Routing(b_->netns);
  EXPECT_TRUE(netlink::GetLink(other, "eth0")->up);
  EXPECT_EQ(Call("bridge", "DEL", *a_, config).exit_code, 0);
  EXPECT_FALSE(netlink::GetLink(inside, "eth0"));
}

TEST_F(BridgeTest, CapabilityArgumentsAreFollowed) {
  std::string runtime = R"({"mac":"0a:00:00:00:00:05","ips":["10.7.0.77/24"],"dns":{"servers":["9.9.9.9"]},
                            "ipRanges":[[{"subnet":"10.8.0.0/24"}]]})";
  std::string config = WithField(Bridge(R"("dns":{"nameservers":["1.1.1.1"]},)"), "runtimeConfig", runtime);
  AddResult result = Parse(Call("bridge", "ADD", *a_, config));
  EXPECT_EQ(result.interfaces[2].mac, "0a:00:00:00:00:05");
  ASSERT_EQ(result.ips.size(), 3u);
  EXPECT_EQ(result.ips[0].address.ToString(), "10.8.0.2/24");
  EXPECT_EQ(result.ips[1].address.ToString(), "10.7.0.77/24");
  EXPECT_THAT(result.dns.nameservers, ::testing::ElementsAre("9.9.9.9"));
  Reply by_args =
      Call("bridge", "ADD", *b_, Bridge(""), {"CNI_ARGS=IgnoreUnknown=1;MAC=0a:00:00:00:00:06;IP=10.7.0.78"});
  result = Parse(by_args);
  EXPECT_EQ(result.interfaces[2].mac, "0a:00:00:00:00:06");
  EXPECT_EQ(result.ips[0].address.ToString(), "10.7.0.78/24");
}

TEST_F(BridgeTest, VlansWhereTheKernelHasThem) {
  const char* fields = R"("vlan":100,"preserveDefaultVlan":false,"isDefaultGateway":true,)";
  Reply added = Call("bridge", "ADD", *a_, Bridge(fields));
  auto host = Routing(*host_);
  if (added.exit_code != 0 && added.output.find("do not filter VLANs") != std::string::npos) {
    EXPECT_THAT(added.output, HasSubstr(R"("code":2)"));
    EXPECT_FALSE(netlink::GetLink(host, "br0"));
    EXPECT_FALSE(PathExists(Ipam() + "/10.7.0.2"));
    GTEST_SKIP() << added.output;
  }
  AddResult result = Parse(added);
  ASSERT_EQ(result.interfaces.size(), 4u);
  EXPECT_EQ(result.interfaces[3].name, "br0.100");
  EXPECT_EQ(*netlink::ListPortVlans(host, netlink::GetLink(host, result.interfaces[1].name)->index),
            (std::vector<netlink::PortVlan>{{.id = 100, .pvid = true, .untagged = true}}));
  Join(*b_, fields);
  EXPECT_TRUE(Reaches(a_->netns, b_->netns, "10.7.0.3"));
  EXPECT_TRUE(Reaches(*host_, a_->netns, "10.7.0.2"));
  EXPECT_EQ(Call("bridge", "CHECK", *a_, WithPrevious(Bridge(fields), added.output)).exit_code, 0);
  EXPECT_EQ(Call("bridge", "DEL", *b_, Bridge(fields)).exit_code, 0);
  Parse(Call("bridge", "ADD", *b_, Bridge(R"("vlanTrunk":[{"minID":5,"maxID":6}],)")));
}

TEST_F(BridgeTest, AnExhaustedRangeLeavesNothing) {
  std::string config = BridgeWith("", HostLocal(R"([[{"subnet":"10.7.0.0/30"}]])"));
  Parse(Call("bridge", "ADD", *a_, config));
  Reply refused = Call("bridge", "ADD", *b_, config);
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.output, HasSubstr(R"("code":999)"));
  EXPECT_THAT(refused.output, HasSubstr("no IP addresses available in range set: 10.7.0.1-10.7.0.2"));
  auto inside = Routing(b_->netns);
  EXPECT_FALSE(netlink::GetLink(inside, "eth0"));
  EXPECT_EQ(netlink::ListLinks(*std::make_unique<netlink::Socket>(Routing(*host_)))->size(),
            3u);  // lo, br0, a
}

TEST_F(BridgeTest, DelWithoutAddAndOfAVanishedNamespaceSucceed) {
  EXPECT_EQ(Call("bridge", "DEL", *a_, Bridge("")).exit_code, 0);
  EXPECT_EQ(Call("bridge", "DEL", *a_, Bridge(""), {"CNI_NETNS=" + dir_ + "/nowhere"}).exit_code, 0);
  EXPECT_EQ(Call("bridge", "DEL", *a_, Bridge(""), {"CNI_NETNS="}).exit_code, 0);
  Reply absent = Call("bridge", "ADD", *a_, Bridge(""), {"CNI_NETNS=" + dir_ + "/nowhere"});
  EXPECT_THAT(absent.output, HasSubstr(R"("code":5)"));
}

TEST_F(BridgeTest, AnotherAddressManagerIsStarted) {
  std::string program = dir_ + "/static-ipam";
  ASSERT_TRUE(WriteFile(program,
                        "#!/bin/sh\n[ $CNI_COMMAND = ADD ] && echo '{\"cniVersion\":\"1.1.0\",\"ips\":"
                        "[{\"address\":\"10.9.0.5/24\"}]}'\necho $CNI_COMMAND >>" +
                            dir_ + "/calls\n",
                        0755));
  std::string config = BridgeWith(R"("isGateway":true,)", R"({"type":"static-ipam"})");
  std::string path = "CNI_PATH=" + dir_;
  AddResult result = Parse(Call("bridge", "ADD", *a_, config, {path}));
  ASSERT_EQ(result.ips.size(), 1u);
  EXPECT_EQ(result.ips[0].gateway->ToString(), "10.9.0.1");
  EXPECT_EQ(Call("bridge", "STATUS", *a_, config, {path}).exit_code, 0);
  EXPECT_EQ(Call("bridge", "DEL", *a_, config, {path}).exit_code, 0);
  EXPECT_EQ(*ReadFile(dir_ + "/calls"), "ADD\nSTATUS\nDEL\n");
  Reply unknown = Call("bridge", "ADD", *a_, config);
  EXPECT_THAT(unknown.output, HasSubstr("failed to find plugin"));
  // A copy of host-local under its name runs as a separate program, with the same result.
  ASSERT_TRUE(WriteFile(dir_ + "/host-local", *ReadFile(std::string(KEELSON_CNI_BIN) + "/host-local"), 0755));
  result = Parse(Call("bridge", "ADD", *a_, Bridge(""), {path}));
  EXPECT_EQ(result.ips[0].address.ToString(), "10.7.0.2/24");
  EXPECT_EQ(Call("bridge", "DEL", *a_, Bridge(""), {path}).exit_code, 0);
  EXPECT_FALSE(PathExists(Ipam() + "/10.7.0.2"));
}

// A small separate file system for the address manager, with no space left.
class DiskFullTest : public BridgeTest {
 protected:
  void SetUp() override {
    BridgeTest::SetUp();
    if (IsSkipped()) return;
    ASSERT_TRUE(MakeDirs(dir_ + "/ipam"));
    if (::mount("tmpfs", (dir_ + "/ipam").c_str(), "tmpfs", 0, "size=64k") != 0) {
      GTEST_SKIP() << "cannot mount a tmpfs: " << std::strerror(errno);
    }
    mounted_ = true;
  }
  void TearDown() override {
    if (mounted_) ::umount2((dir_ + "/ipam").c_str(), MNT_DETACH);
    BridgeTest::TearDown();
  }
  // Uses up all space on the file system.
  void Fill() { EXPECT_FALSE(WriteFile(dir_ + "/ipam/filler", std::string(1 << 20, 'x'))); }
  void Relieve() { EXPECT_TRUE(RemoveFile(dir_ + "/ipam/filler")); }
  bool mounted_ = false;
};

TEST_F(DiskFullTest, AddFailsWithoutATraceAndDelWorks) {
  std::string first = Join(*b_);
  Fill();
  std::vector<std::string> before = *ListDir(Ipam());
  Reply refused = Call("bridge", "ADD", *a_, Bridge(R"("isDefaultGateway":true,)"));
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.output, HasSubstr(R"("code":5)"));
  EXPECT_THAT(refused.output, HasSubstr("No space left on device"));
  EXPECT_EQ(*ListDir(Ipam()), before);
  auto inside = Routing(a_->netns);
  EXPECT_FALSE(netlink::GetLink(inside, "eth0"));
  EXPECT_EQ(Call("bridge", "CHECK", *b_, WithPrevious(Bridge(""), first)).exit_code, 0);
  EXPECT_EQ(Call("bridge", "DEL", *b_, Bridge("")).exit_code, 0);
  EXPECT_FALSE(PathExists(Ipam() + "/10.7.0.2"));
  Relieve();
  EXPECT_EQ(Parse(Call("bridge", "ADD", *a_, Bridge(""))).ips[0].address.ToString(), "10.7.0.3/24");
}

TEST_F(DiskFullTest, FromTheFirstAddOn) {
  Fill();
  Reply refused = Call("bridge", "ADD", *a_, Bridge(""));
  EXPECT_THAT(refused.output, HasSubstr(R"("code":5)"));
  Relieve();
  EXPECT_EQ(Parse(Call("bridge", "ADD", *a_, Bridge(""))).ips[0].address.ToString(), "10.7.0.2/24");
}

// Any input gives an error in the specification's form, and no crash.
TEST_F(BridgeTest, MalformedConfigurationsAreErrors) {
  std::string deep(1000, '[');
  const std::string head = R"({"cniVersion":"1.1.0","name":"net","type":"x",)";
  const std::string configs[] = {
      "",
      "{",
      "[]",
      "null",
      "7",
      "\"x\"",
      deep,
      std::string("\0\1\2", 3),
      "{\"cniVersion\":\"\xff\"}",
      R"({"cniVersion":[]})",
      R"({"cniVersion":"1.1.0"})",
      R"({"cniVersion":"9.0.0","name":"net"})",
      R"({"cniVersion":"1.1.0","name":"../x"})",
      head + R"("prevResult":7})",
      head + R"("prevResult":{"ips":[{"address":"10.0.0.0/99"}]}})",
      head + R"("prevResult":{"ips":[{}],"interfaces":7}})",
      head + R"("prevResult":{"routes":[{"dst":"x"}]}})",
      head + R"("cni.dev/valid-attachments":[7],"prevResult":[],"ipam":7,"runtimeConfig":7})",
      head + R"("runtimeConfig":{"portMappings":7,"bandwidth":7,"mac":7,"ips":7,"ipRanges":7,"dns":7},
                "bridge":[],"vlan":"x","vlanTrunk":{},"snat":7,"ingressRate":-1,"ipam":{"type":7,"subnet":[]},
                "prevResult":{"ips":7}})"};
  for (const char* plugin : {"bridge", "host-local", "loopback", "portmap", "bandwidth"}) {
    for (const char* command : {"ADD", "CHECK", "DEL", "GC", "STATUS"}) {
      for (const std::string& config : configs) {
        Reply reply = Call(plugin, command, *a_, config);
        SCOPED_TRACE(std::string(plugin) + " " + command + " " + config.substr(0, 200) + " -> " +
                     reply.output);
        ASSERT_EQ(reply.exit_code, 1);
        auto error = ParseJson(reply.output, "error");
        ASSERT_TRUE(error);
        EXPECT_TRUE(error->contains("cniVersion") && error->contains("msg"));
        int64_t code = error->at("code").as_int64();
        EXPECT_TRUE(code == 1 || code == 2 || code == 4 || code == 6 || code == 7) << code;
      }
    }
  }
  Reply version = Call("bridge", "VERSION", *a_, "{");
  EXPECT_EQ(version.exit_code, 1);
  Reply unknown = Call("bridge", "FLY", *a_, Bridge(""));
  EXPECT_THAT(unknown.output, HasSubstr(R"("code":4)"));
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
