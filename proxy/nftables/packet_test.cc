// What the rules do to packets: a node, two pods and a client in network namespaces, real sockets.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "lib/linux/sysctl.h"
#include "lib/nft/trace.h"
#include "proxy/nftables/dataplane.h"
#include "proxy/nftables/testing/packet_fixture.h"
#include "proxy/sync/conntrack_cleaner.h"

namespace keelson::proxy::nftables {
namespace {

using ::testing::ElementsAre;

constexpr std::chrono::milliseconds kDropped{300};

IpAddress Ip(const std::string& text) { return *IpAddress::Parse(text); }

class PacketTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto world = World::Make();
    if (!world) GTEST_SKIP() << world.error().message();
    world_ = std::move(*world);
    for (const char* prefix : {"10.1.0.", "fd01::"}) {
      servers_.push_back(
          std::make_unique<EchoServer>("pod1", world_->pod1, Ip(prefix + std::string("1")), 8080));
      servers_.push_back(
          std::make_unique<EchoServer>("pod2", world_->pod2, Ip(prefix + std::string("2")), 8080));
    }
    Start();
  }

  // A proxy that knows nothing yet.
  void Start(bool v4 = true, bool replies_bypass_node = false, const std::string& pod_interfaces = "") {
    auto kernel = nft::OpenKernel(world_->node);
    ASSERT_TRUE(kernel) << kernel.error().message();
    dataplane_ = std::make_unique<Dataplane>(
        std::move(*kernel), Options{.v4 = v4,
                                    .pod_cidrs = {*IpPrefix::Parse(v4 ? "10.1.0.0/24" : "fd01::/64")},
                                    .pod_interface_prefix = pod_interfaces,
                                    .replies_bypass_node = replies_bypass_node});
    dataplane_->plan().SetNodeIps({Ip(v4 ? "172.30.0.1" : "fd30::1")});
  }
  static ResolvedPort Service(std::initializer_list<int> pods, bool v4 = true) {
    ResolvedPort port;
    port.service = {.name = "default/web:",
                    .cluster_ip = Ip(v4 ? "10.96.0.1" : "fd96::1"),
                    .port = 80,
                    .node_port = 30080};
    for (int pod : pods) {
      port.cluster.push_back({Ip((v4 ? "10.1.0." : "fd01::") + std::to_string(pod)), 8080, true});
    }
    port.has_endpoints = !port.cluster.empty();
    return port;
  }
  SyncStats Set(const ResolvedPort& port) {
    dataplane_->plan().SetService("default/web", {port});
    auto synced = dataplane_->Sync();
    EXPECT_TRUE(synced) << synced.error().message();
    return synced.value_or(SyncStats{});
  }
  Result<Connection> Connect(const linux::NetNs& from, const std::string& to, uint16_t port,
                             std::chrono::milliseconds limit = std::chrono::seconds(5)) {
    return Connection::Open(from, Ip(to), port, limit);
  }
  // Servers that answer in `tries` connections.
  std::set<std::string> Servers(const linux::NetNs& from, const std::string& to, uint16_t port,
                                int tries = 24) {
    std::set<std::string> out;
    for (int i = 0; i < tries; ++i) {
      auto connection = Connect(from, to, port);
      out.insert(connection ? connection->server() : connection.error().message());
    }
    return out;
  }

  std::unique_ptr<World> world_;
  std::vector<std::unique_ptr<EchoServer>> servers_;
  std::unique_ptr<Dataplane> dataplane_;
};

TEST_F(PacketTest, ClusterIpReachesEveryEndpointFromEverywhere) {
  Set(Service({1, 2}));
  EXPECT_THAT(Servers(world_->client, "10.96.0.1", 80), ElementsAre("pod1", "pod2"));
  EXPECT_THAT(Servers(world_->node, "10.96.0.1", 80), ElementsAre("pod1", "pod2"));
  EXPECT_THAT(Servers(world_->pod1, "10.96.0.1", 80), ElementsAre("pod1", "pod2"));
  // Clients outside of the pods are masqueraded; pods are not, except to reach themselves.
  EXPECT_EQ(Connect(world_->client, "10.96.0.1", 80)->seen_as(), "10.1.0.254");
  Set(Service({2}));
  EXPECT_EQ(Connect(world_->pod1, "10.96.0.1", 80)->seen_as(), "10.1.0.1");
  EXPECT_EQ(Connect(world_->pod2, "10.96.0.1", 80)->seen_as(), "10.1.0.254");
}

TEST_F(PacketTest, NodePortAnswersOnTheNodesAddresses) {
  Set(Service({1, 2}));
  EXPECT_THAT(Servers(world_->client, "172.30.0.1", 30080), ElementsAre("pod1", "pod2"));
  EXPECT_THAT(Servers(world_->pod1, "172.30.0.1", 30080), ElementsAre("pod1", "pod2"));
  EXPECT_THAT(Servers(world_->node, "172.30.0.1", 30080), ElementsAre("pod1", "pod2"));
  EXPECT_EQ(Connect(world_->client, "172.30.0.1", 30080)->seen_as(), "10.1.0.254");
  EXPECT_EQ(Connect(world_->client, "10.1.0.254", 30080).error().errnum(), ECONNREFUSED);
}

TEST_F(PacketTest, WithoutEndpointsConnectionsAreRefusedAtOnce) {
  Set(Service({}));
  for (const linux::NetNs* from : {&world_->client, &world_->node, &world_->pod1}) {
    EXPECT_EQ(Connect(*from, "10.96.0.1", 80).error().errnum(), ECONNREFUSED);
    EXPECT_EQ(Connect(*from, "172.30.0.1", 30080).error().errnum(), ECONNREFUSED);
  }
  Set(Service({1}));
  EXPECT_TRUE(Connect(world_->client, "10.96.0.1", 80));
  EXPECT_EQ(Connect(world_->client, "10.96.0.1", 81).error().errnum(), ECONNREFUSED);
}

TEST_F(PacketTest, UpdatesAndRestartsKeepEstablishedConnections) {
  Set(Service({1}));
  auto old = Connect(world_->client, "10.96.0.1", 80);
  ASSERT_TRUE(old) << old.error().message();
  auto old_node_port = Connect(world_->client, "172.30.0.1", 30080);
  ASSERT_TRUE(old_node_port);
  Set(Service({2}));
  EXPECT_TRUE(old->Echoes());
  EXPECT_EQ(Connect(world_->client, "10.96.0.1", 80)->server(), "pod2");

  Start();
  SyncStats again = Set(Service({2}));
  EXPECT_TRUE(again.full);
  EXPECT_EQ(again.operations, 0u);
  Start();
  EXPECT_GT(Set(Service({1, 2})).operations, 0u);
  EXPECT_TRUE(old->Echoes());
  EXPECT_TRUE(old_node_port->Echoes());
  EXPECT_EQ(old->server(), "pod1");
}

TEST_F(PacketTest, ExternalTrafficPolicyLocalKeepsTheClientsAddress) {
  ResolvedPort port = Service({1, 2});
  port.service.external_local = true;
  port.service.external_ips = {Ip("192.0.2.7")};
  port.local = {{Ip("10.1.0.1"), 8080, true}};
  Set(port);
  EXPECT_THAT(Servers(world_->client, "172.30.0.1", 30080, 8), ElementsAre("pod1"));
  EXPECT_EQ(Connect(world_->client, "172.30.0.1", 30080)->seen_as(), "172.30.0.2");
  EXPECT_EQ(Connect(world_->client, "192.0.2.7", 80)->seen_as(), "172.30.0.2");
  EXPECT_THAT(Servers(world_->pod1, "192.0.2.7", 80), ElementsAre("pod1", "pod2"));
  EXPECT_THAT(Servers(world_->node, "192.0.2.7", 80), ElementsAre("pod1", "pod2"));
  port.local.clear();
  Set(port);
  EXPECT_EQ(Connect(world_->client, "172.30.0.1", 30080, kDropped).error().errnum(), ETIMEDOUT);
  EXPECT_EQ(Connect(world_->client, "192.0.2.7", 80, kDropped).error().errnum(), ETIMEDOUT);
  EXPECT_TRUE(Connect(world_->pod1, "192.0.2.7", 80));
}

TEST_F(PacketTest, SessionAffinityStaysUntilTheEndpointGoes) {
  ResolvedPort port = Service({1, 2});
  port.service.affinity = std::chrono::seconds(60);
  Set(port);
  for (auto [to, number] : {std::pair("10.96.0.1", 80), std::pair("172.30.0.1", 30080)}) {
    auto first = Servers(world_->client, to, static_cast<uint16_t>(number), 12);
    ASSERT_EQ(first.size(), 1u);
    int gone = *first.begin() == "pod1" ? 1 : 2;
    ResolvedPort without = Service({3 - gone});
    without.service.affinity = port.service.affinity;
    Set(without);
    EXPECT_THAT(Servers(world_->client, to, static_cast<uint16_t>(number), 4),
                ElementsAre("pod" + std::to_string(3 - gone)));
    Set(port);
    // It has moved for good.
    EXPECT_THAT(Servers(world_->client, to, static_cast<uint16_t>(number), 12),
                ElementsAre("pod" + std::to_string(3 - gone)));
  }
}

TEST_F(PacketTest, SourceRangesKeepOthersOut) {
  ResolvedPort port = Service({1});
  port.service.load_balancer_ips = {Ip("192.0.2.7")};
  port.service.source_ranges = {*IpPrefix::Parse("203.0.113.0/24")};
  Set(port);
  EXPECT_EQ(Connect(world_->client, "192.0.2.7", 80, kDropped).error().errnum(), ETIMEDOUT);
  EXPECT_TRUE(Connect(world_->client, "10.96.0.1", 80));
  port.service.source_ranges.push_back(*IpPrefix::Parse("172.30.0.0/28"));
  Set(port);
  EXPECT_TRUE(Connect(world_->client, "192.0.2.7", 80));
}

TEST_F(PacketTest, Ipv6) {
  Start(false);
  Set(Service({1, 2}, false));
  EXPECT_THAT(Servers(world_->client, "fd96::1", 80), ElementsAre("pod1", "pod2"));
  EXPECT_THAT(Servers(world_->pod1, "fd96::1", 80), ElementsAre("pod1", "pod2"));
  EXPECT_THAT(Servers(world_->client, "fd30::1", 30080), ElementsAre("pod1", "pod2"));
  ResolvedPort sticky = Service({1, 2}, false);
  sticky.service.affinity = std::chrono::seconds(60);
  Set(sticky);
  EXPECT_EQ(Servers(world_->client, "fd96::1", 80, 12).size(), 1u);
  Set(Service({}, false));
  EXPECT_EQ(Connect(world_->client, "fd96::1", 80).error().errnum(), ECONNREFUSED);
}

TEST_F(PacketTest, UdpClientsLeaveAnEndpointThatHasGone) {
  UdpServer dns1("pod1", world_->pod1, Ip("10.1.0.1"), 5353),
      dns2("pod2", world_->pod2, Ip("10.1.0.2"), 5353);
  auto service = [](int pod) {
    ResolvedPort port;
    port.service = {.name = "default/dns:",
                    .protocol = kUdp,
                    .cluster_ip = Ip("10.96.0.10"),
                    .port = 53,
                    .node_port = 30053};
    if (pod != 0) port.cluster = port.serving = {{Ip("10.1.0." + std::to_string(pod)), 5353, true}};
    port.has_endpoints = pod != 0;
    return port;
  };
  auto socket = netlink::Socket::OpenNetfilterIn(world_->node);
  ASSERT_TRUE(socket) << socket.error().message();
  ConntrackCleaner cleaner;
  cleaner.SetNodeIps({Ip("172.30.0.1")});
  auto follow = [&](int pod) {
    Set(service(pod));
    cleaner.SetService("default/web", {service(pod)});
    auto removed = cleaner.Clean(*socket);
    EXPECT_TRUE(removed) << removed.error().message();
    return removed ? removed->v4 : -1;
  };
  UdpClient by_ip(world_->client), by_port(world_->client);
  EXPECT_EQ(follow(1), 0);
  EXPECT_EQ(by_ip.Ask(Ip("10.96.0.10"), 53), "pod1");
  EXPECT_EQ(by_port.Ask(Ip("172.30.0.1"), 30053), "pod1");
  Set(service(2));  // without cleaning, the flow stays where it was
  EXPECT_EQ(by_ip.Ask(Ip("10.96.0.10"), 53), "pod1");
  EXPECT_EQ(follow(2), 2);
  EXPECT_EQ(by_ip.Ask(Ip("10.96.0.10"), 53), "pod2");
  EXPECT_EQ(by_port.Ask(Ip("172.30.0.1"), 30053), "pod2");
}

// What the rules do with each protocol, as they are read back from the kernel.
TEST_F(PacketTest, EveryProtocolsRulesCanBeTraced) {
  for (uint8_t protocol : {kTcp, kUdp, kSctp}) {
    ResolvedPort port = Service({1, 2});
    port.service.protocol = protocol;
    Set(port);
    std::vector<nft::LiveTable> tables;
    auto read = world_->node.Run([&]() -> Result<> {
      KEELSON_ASSIGN_OR_RETURN(tables, nft::ReadLiveTables({nft::Family::kIpv4}));
      return {};
    });
    ASSERT_TRUE(read) << read.error().message();
    for (auto [to, number] : {std::pair("10.96.0.1", 80), std::pair("172.30.0.1", 30080)}) {
      nft::Packet packet{.source = Ip("10.1.0.1"),
                         .destination = Ip(to),
                         .protocol = protocol,
                         .source_port = 40000,
                         .destination_port = static_cast<uint16_t>(number)};
      std::set<std::string> ends;
      for (const nft::TraceOutcome& way :
           nft::TraceHook(tables, nft::HookPoint::kPrerouting, packet, [](const IpAddress&) { return 1u; })) {
        EXPECT_TRUE(way.packet.translated);
        EXPECT_TRUE(way.not_understood.empty());
        ends.insert(way.packet.destination.ToString() + ":" + std::to_string(way.packet.destination_port));
      }
      EXPECT_THAT(ends, ElementsAre("10.1.0.1:8080", "10.1.0.2:8080")) << int{protocol} << " " << to;
    }
  }
}

// nft(8) cannot list everything that the kernel accepts, and must not crash when an administrator lists this table.
TEST_F(PacketTest, TheNftProgramCanListIt) {
  if (std::system("command -v nft >/dev/null") != 0) GTEST_SKIP() << "nft is not installed";
  for (bool v4 : {true, false}) {
    Start(v4, true, "pod");
    ResolvedPort port = Service({1, 2}, v4), sticky = Service({1, 2}, v4), local = Service({1, 2}, v4);
    port.service.load_balancer_ips = {Ip(v4 ? "192.0.2.7" : "fd02::7")};
    port.service.source_ranges = {*IpPrefix::Parse(v4 ? "203.0.113.0/24" : "fd03::/64")};
    sticky.service.affinity = std::chrono::seconds(60);
    sticky.service.port = 81;
    sticky.service.node_port = 30081;
    local.service.external_local = true;
    local.service.port = 82;
    local.service.node_port = 30082;
    local.local = {local.cluster[0]};
    dataplane_->plan().SetService("default/web", {port, sticky, local});
    dataplane_->plan().SetServiceCidrs({*IpPrefix::Parse(v4 ? "10.96.0.0/12" : "fd96::/108")});
    auto synced = dataplane_->Sync();
    ASSERT_TRUE(synced) << synced.error().message();
    int status = -1;
    auto ran = world_->node.Run([&]() -> Result<> {
      status = std::system("nft list ruleset >/dev/null");
      return {};
    });
    EXPECT_TRUE(ran);
    EXPECT_EQ(status, 0);
  }
}

// Without br_netfilter the reply of one pod to another goes over the bridge, past the node's translation.
TEST_F(PacketTest, PodsReachEachOtherThoughRepliesWouldBypassTheNode) {
  auto off = world_->node.Run([] { return linux::EnsureSysctl("net/bridge/bridge-nf-call-iptables", "0"); });
  if (!off && !off.error().Is(Code::kNotFound)) GTEST_SKIP() << off.error().message();
  Start(true, true);
  Set(Service({2}));
  auto connection = Connect(world_->pod1, "10.96.0.1", 80);
  ASSERT_TRUE(connection) << connection.error().message();
  EXPECT_EQ(connection->seen_as(), "10.1.0.254");
  EXPECT_EQ(Connect(world_->client, "10.96.0.1", 80)->server(), "pod2");
}

}  // namespace
}  // namespace keelson::proxy::nftables
