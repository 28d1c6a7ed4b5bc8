// Socket load balancing alone, without any rules for packets: who reaches a Service was served at the socket.
#include "proxy/ebpf/datapath.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <functional>
#include <thread>

#include "ctl/ebpf/socket_lb.h"
#include "lib/base/file.h"
#include "lib/bpf/link.h"
#include "tests/netns/ebpf_node.h"

namespace keelson::netns {
namespace {

using proxy::Backend;
using proxy::ResolvedPort;
using proxy::ebpf::Datapath;
using proxy::ebpf::Plan;

class SocketsTest : public EbpfNodeTest {
 protected:
  void SetUp() override {
    EbpfNodeTest::SetUp();
    if (IsSkipped()) return;
    ASSERT_TRUE(machine_->Enter(true));
  }

  Datapath Start(bool v4 = true, uint32_t least = 64) {
    return {{.cgroup = machine_->places().cgroup,
             .pin_directory = machine_->places().pins,
             .node_netns = node_,
             .least_entries = least},
            v4};
  }
  static ResolvedPort Port(const std::string& vip, std::vector<Backend> endpoints,
                           uint8_t protocol = proxy::kTcp) {
    ResolvedPort out{
        .service = {.name = "ns/" + vip, .protocol = protocol, .cluster_ip = Ip(vip.c_str()), .port = 80}};
    out.has_endpoints = !endpoints.empty();
    out.cluster = std::move(endpoints);
    return out;
  }
  // The answering endpoint, or the error.
  std::string Ask(const char* client, const IpAddress& to, uint8_t protocol = proxy::kTcp) const {
    Question question{.protocol = protocol, .to = to, .port = 80, .limit = std::chrono::milliseconds(500)};
    Result<Answer> answer = netns::Ask(world_->Place(client), question);
    return answer ? answer->server : std::strerror(answer.error().errnum());
  }
  UniqueFd Socket(const char* client, int family, int type) const {
    UniqueFd out;
    EXPECT_TRUE(world_->Place(client).Run([&]() -> Result<> {
      out.Reset(::socket(family, type | SOCK_CLOEXEC, 0));
      return out ? Result<>() : ErrnoError("socket");
    }));
    timeval limit{.tv_sec = 2};
    ::setsockopt(out.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    return out;
  }
};

sockaddr_in6 SocketAddress6(const IpAddress& ip, uint16_t port) {
  sockaddr_in6 out{.sin6_family = AF_INET6, .sin6_port = htons(port)};
  if (ip.is_v4()) {
    out.sin6_addr.s6_addr[10] = out.sin6_addr.s6_addr[11] = 0xff;
    std::memcpy(out.sin6_addr.s6_addr + 12, ip.bytes().data(), 4);
  } else {
    std::memcpy(out.sin6_addr.s6_addr, ip.bytes().data(), 16);
  }
  return out;
}

TEST_F(SocketsTest, ServesPodsAndTheNodeAndNobodyElse) {
  Plan plan({.v4 = true});
  plan.SetService(
      "s", {Port("10.96.0.1", {At("pod1"), At("pod2")}), Port("10.96.0.1", {At("pod2")}, proxy::kUdp)});
  Datapath sockets = Start();
  Write(sockets, plan);
  for (const char* client : {"pod1", "pod2", "node"}) {
    std::set<std::string> got;
    for (int i = 0; i < 32; ++i) got.insert(Ask(client, Ip("10.96.0.1")));
    EXPECT_THAT(got, ::testing::ElementsAre("pod1", "pod2")) << client;
  }
  ASSERT_TRUE(machine_->Enter(false));
  EXPECT_NE(Ask("pod2", Ip("10.96.0.1")), "pod1");
}

TEST_F(SocketsTest, PeersAndSendersAreTheService) {
  for (bool v4 : {true, false}) {
    Plan plan({.v4 = v4});
    const IpAddress vip = Ip(v4 ? "10.96.0.1" : "fd96::1");
    plan.SetService(
        "s", {Port(vip.ToString(), {At("pod1", v4)}), Port(vip.ToString(), {At("pod1", v4)}, proxy::kUdp)});
    Datapath sockets = Start(v4);
    Write(sockets, plan);
    // An IPv6 socket that reaches IPv4 through mapped addresses.
    const sockaddr_in6 to = SocketAddress6(vip, 80);
    auto* address = reinterpret_cast<const sockaddr*>(&to);
    sockaddr_in6 peer{};
    socklen_t size = sizeof peer;
    UniqueFd stream = Socket("pod2", AF_INET6, SOCK_STREAM);
    ASSERT_EQ(::connect(stream.get(), address, sizeof to), 0) << std::strerror(errno);
    ASSERT_EQ(::getpeername(stream.get(), reinterpret_cast<sockaddr*>(&peer), &size), 0);
    EXPECT_EQ(std::memcmp(&peer.sin6_addr, &to.sin6_addr, 16), 0);
    EXPECT_EQ(peer.sin6_port, htons(80));

    UniqueFd datagrams = Socket("pod2", AF_INET6, SOCK_DGRAM);
    ASSERT_EQ(::sendto(datagrams.get(), "who", 3, 0, address, sizeof to), 3) << std::strerror(errno);
    char buffer[64];
    sockaddr_in6 from{};
    size = sizeof from;
    ASSERT_GT(
        ::recvfrom(datagrams.get(), buffer, sizeof buffer, 0, reinterpret_cast<sockaddr*>(&from), &size), 0)
        << std::strerror(errno);
    EXPECT_EQ(std::memcmp(&from.sin6_addr, &to.sin6_addr, 16), 0);
    EXPECT_EQ(from.sin6_port, htons(80));
    // A socket connected to the endpoint's own address has that peer.
    const sockaddr_in6 direct = SocketAddress6(EndpointAddress("pod1", v4), kEndpointPort);
    const sockaddr_in6 nowhere{.sin6_family = AF_UNSPEC};
    ASSERT_EQ(::connect(stream.get(), reinterpret_cast<const sockaddr*>(&nowhere), sizeof nowhere), 0);
    ASSERT_EQ(::connect(stream.get(), reinterpret_cast<const sockaddr*>(&direct), sizeof direct), 0);
    ASSERT_EQ(::getpeername(stream.get(), reinterpret_cast<sockaddr*>(&peer), &size), 0);
    EXPECT_EQ(peer.sin6_port, htons(kEndpointPort));
  }
}

// An unconnected UDP socket keeps its endpoint while the endpoint exists. A connected one depends on packet
// rules, which this test does not have.
TEST_F(SocketsTest, DatagramsOfASocketGoToOneEndpoint) {
  Plan plan({.v4 = true});
  ResolvedPort port = Port("10.96.0.1", {At("pod1"), At("pod2"), At("remote")}, proxy::kUdp);
  plan.SetService("s", {port});
  Datapath sockets = Start();
  Write(sockets, plan);
  const sockaddr_in6 to = SocketAddress6(Ip("10.96.0.1"), 80);
  auto ask = [&](const UniqueFd& fd) {
    char buffer[64] = {};
    EXPECT_EQ(::sendto(fd.get(), "who", 3, 0, reinterpret_cast<const sockaddr*>(&to), sizeof to), 3);
    EXPECT_GT(::recv(fd.get(), buffer, sizeof buffer - 1, 0), 0) << std::strerror(errno);
    return std::string(buffer).substr(0, std::string(buffer).find(' '));
  };
  UniqueFd one = Socket("node", AF_INET6, SOCK_DGRAM);
  const std::string first = ask(one);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(ask(one), first);
  std::set<std::string> others;
  for (int i = 0; i < 48; ++i) others.insert(ask(Socket("node", AF_INET6, SOCK_DGRAM)));
  EXPECT_EQ(others.size(), 3u);
  std::erase_if(port.cluster, [&](const Backend& b) { return b.ip == EndpointAddress(first, true); });
  plan.SetService("s", {port});
  Write(sockets, plan);
  const std::string second = ask(one);
  EXPECT_NE(second, first);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(ask(one), second);
  EXPECT_THAT(Ask("pod2", Ip("10.96.0.1"), proxy::kUdp),
              ::testing::Not(::testing::AnyOf("pod1", "pod2", "remote")));
}

TEST_F(SocketsTest, RefusesAndDrops) {
  Plan plan({.v4 = true});
  ResolvedPort elsewhere = Port("10.96.0.2", {});
  elsewhere.service.internal_local = elsewhere.has_endpoints = true;
  plan.SetService("s", {Port("10.96.0.1", {}), Port("10.96.0.1", {}, proxy::kUdp), elsewhere});
  Datapath sockets = Start();
  Write(sockets, plan);
  for (const char* client : {"pod2", "node"}) {
    for (uint8_t protocol : {proxy::kTcp, proxy::kUdp}) {
      EXPECT_EQ(Ask(client, Ip("10.96.0.1"), protocol), std::strerror(ECONNREFUSED)) << client;
    }
    EXPECT_EQ(Ask(client, Ip("10.96.0.2")), std::strerror(EPERM));
    // No Service at all on this port of a cluster IP.
    EXPECT_EQ(Ask(client, Ip("10.96.0.2"), proxy::kUdp), std::strerror(ECONNREFUSED));
  }
}

TEST_F(SocketsTest, ProgramsThatSomebodyDetachesComeBack) {
  Plan plan({.v4 = true});
  plan.SetService("s", {Port("10.96.0.1", {At("pod1")})});
  Datapath sockets = Start();
  Write(sockets, plan);
  const auto detach = [&] { return bpf::Link::OpenPinned(Pins("connect4"))->Detach(); };
  const auto remove = [&] { return RemoveFile(Pins("connect4")); };
  for (const std::function<Result<>()>& harm : {std::function<Result<>()>(detach), {remove}}) {
    EXPECT_EQ(Ask("pod2", Ip("10.96.0.1")), "pod1");
    ASSERT_TRUE(harm());
    sockets.LookAtPrograms();
    Write(sockets, plan);
    EXPECT_FALSE(last_.compared);
    EXPECT_EQ(Ask("pod2", Ip("10.96.0.1")), "pod1");
    EXPECT_TRUE(PathExists(Pins("connect4")));
  }
}

TEST_F(SocketsTest, AffinityHoldsUntilItsEndpointGoesOrItsTimeEnds) {
  Plan plan({.v4 = true});
  ResolvedPort port = Port("10.96.0.1", {At("pod1"), At("pod2")});
  port.service.affinity = std::chrono::hours(3);
  plan.SetService("s", {port});
  Datapath sockets = Start();
  Write(sockets, plan);
  const std::string first = Ask("node", Ip("10.96.0.1"));
  for (int i = 0; i < 16; ++i) EXPECT_EQ(Ask("node", Ip("10.96.0.1")), first);
  // A client is a pod: another one is another client.
  auto affinity = bpf::Map::OpenPinned(Pins("maps-1/affinity"));
  ASSERT_TRUE(affinity) << affinity.error().message();
  EXPECT_EQ(affinity->Dump()->size(), 1u);
  (void)Ask("pod1", Ip("10.96.0.1"));
  EXPECT_EQ(affinity->Dump()->size(), 2u);
  // The endpoint is removed: another one is selected and kept.
  ResolvedPort rest = port;
  std::erase_if(rest.cluster, [&](const Backend& b) { return b.ip == EndpointAddress(first, true); });
  plan.SetService("s", {rest});
  Write(sockets, plan);
  const std::string second = Ask("node", Ip("10.96.0.1"));
  EXPECT_NE(second, first);
  plan.SetService("s", {port});
  Write(sockets, plan);
  for (int i = 0; i < 16; ++i) EXPECT_EQ(Ask("node", Ip("10.96.0.1")), second);
  // Affinity has expired three hours ago: any endpoint.
  std::set<std::string> got;
  for (int i = 0; i < 32; ++i) {
    const auto entries = *affinity->Dump();
    for (const auto& [key, value] : entries) {
      dataplane::AffinityEntry entry;
      std::memcpy(&entry, value.data(), sizeof entry);
      entry.last_used -= 4ull * 3600 * 1'000'000'000;
      ASSERT_TRUE(affinity->Update(key, bpf::Map::Bytes(entry)));
    }
    got.insert(Ask("node", Ip("10.96.0.1")));
  }
  EXPECT_EQ(got.size(), 2u);
}

TEST_F(SocketsTest, ChangesCostWhatTheyChange) {
  Plan plan({.v4 = true});
  for (int i = 0; i < 40; ++i) {
    plan.SetService(std::to_string(i), {Port(Ip("10.96.1.0").Plus(i).ToString(), {At("pod1")})});
  }
  Datapath sockets = Start();
  Write(sockets, plan);
  EXPECT_TRUE(last_.compared);
  EXPECT_EQ(last_.entries, 3u * 40);
  plan.SetService("7", {Port("10.96.1.7", {At("pod1"), At("pod2")})});
  Write(sockets, plan);
  EXPECT_FALSE(last_.compared);
  EXPECT_EQ(last_.entries, 2u);  // a slot, and how many there are
  plan.SetService("7", {});
  Write(sockets, plan);
  EXPECT_EQ(last_.entries, 4u);
  Write(sockets, plan);
  EXPECT_EQ(last_.entries, 0u);
}

TEST_F(SocketsTest, FullMapsAreReplacedByLargerOnes) {
  Plan plan({.v4 = true});
  Datapath sockets = Start(true, 16);
  for (int i = 0; i < 200; ++i) {
    plan.SetService(std::to_string(i), {Port(Ip("10.96.1.0").Plus(i).ToString(), {At("pod1"), At("pod2")})});
    Write(sockets, plan);
    if (i % 20 == 0) {
      EXPECT_THAT(Ask("pod2", Ip("10.96.1.0").Plus(i)), ::testing::AnyOf("pod1", "pod2")) << i;
    }
  }
  EXPECT_GE(bpf::Map::OpenPinned(Pins("maps-1/services"))->shape().max_entries, 400u);
  EXPECT_EQ(bpf::Map::OpenPinned(Pins("maps-1/services"))->Dump()->size(), 400u);
}

// A client connects continuously while proxies restart and their maps grow.
TEST_F(SocketsTest, RestartsAreNotNoticed) {
  Plan plan({.v4 = true});
  plan.SetService("s", {Port("10.96.0.1", {At("pod1")})});
  {
    Datapath sockets = Start();
    Write(sockets, plan);
  }
  Question question{.to = Ip("10.96.0.1"), .port = 80};
  auto open = Conversation::Open(world_->Place("pod2"), question);
  ASSERT_TRUE(open);
  std::atomic<int> asked = 0;
  std::vector<std::string> wrong;
  std::jthread client([&](std::stop_token stop) {
    for (; !stop.stop_requested(); ++asked) {
      std::string who = Ask("pod2", Ip("10.96.0.1"));
      if (who != "pod1") wrong.push_back(who);
    }
  });
  for (int i = 0; i < 10; ++i) {
    const int before = asked;
    Plan fresh({.v4 = true});
    fresh.SetService("s", {Port("10.96.0.1", {At("pod1")})});
    Datapath sockets = Start();
    Write(sockets, fresh);
    EXPECT_TRUE(last_.compared);
    EXPECT_EQ(last_.entries, 0u) << "nothing has changed";
    for (int more = 0; more < 30 << i && i < 6; ++more) {
      fresh.SetService("more" + std::to_string(more),
                       {Port(Ip("10.97.0.0").Plus(more).ToString(), {At("pod1")})});
    }
    Write(sockets, fresh);
    for (int more = 0; more < 30 << i && i < 6; ++more) fresh.SetService("more" + std::to_string(more), {});
    Write(sockets, fresh);
    while (asked < before + 3) std::this_thread::yield();
  }
  client.request_stop();
  client.join();
  EXPECT_THAT(wrong, ::testing::IsEmpty());
  EXPECT_TRUE(open->Echoes());
}

// A starting proxy with other sizes keeps client affinity.
TEST_F(SocketsTest, ClientsMoveToMapsOfAnotherSize) {
  Plan plan({.v4 = true});
  ResolvedPort port = Port("10.96.0.1", {At("pod1"), At("pod2")});
  port.service.affinity = std::chrono::hours(3);
  plan.SetService("s", {port});
  Datapath sockets = Start();
  Write(sockets, plan);
  const std::string first = Ask("node", Ip("10.96.0.1"));
  auto room = [&](const char* map) { return bpf::Map::OpenPinned(Pins(map))->shape().max_entries; };
  EXPECT_GE(room("maps-1/affinity"), 16384u);
  EXPECT_GE(room("maps-1/flows"), 8192u);
  for (uint32_t clients : {4096u, 2048u}) {
    Plan again({.v4 = true});
    again.SetService("s", {port});
    Datapath other({.cgroup = machine_->places().cgroup,
                    .pin_directory = machine_->places().pins,
                    .node_netns = node_,
                    .map_sizes = {.affinity_clients = clients, .udp_sockets = 1024}},
                   true);
    Write(other, again);
    EXPECT_EQ(room("maps-1/affinity"), clients);
    EXPECT_EQ(room("maps-1/flows"), 1024u);
    EXPECT_EQ(room("maps-1/sent"), 1024u);
    EXPECT_EQ(bpf::Map::OpenPinned(Pins("maps-1/affinity"))->Dump()->size(), 1u);
    for (int i = 0; i < 12; ++i) EXPECT_EQ(Ask("node", Ip("10.96.0.1")), first) << clients;
  }
}

// State after a kill between two steps.
TEST_F(SocketsTest, WhatAKillLeavesIsPutRight) {
  Plan plan({.v4 = true});
  plan.SetService("s", {Port("10.96.0.1", {At("pod1")})});
  auto check = [&](const char* what) {
    Plan again({.v4 = true});
    again.SetService("s", {Port("10.96.0.1", {At("pod1")})});
    Datapath sockets = Start();
    Write(sockets, again);
    EXPECT_EQ(Ask("pod2", Ip("10.96.0.1")), "pod1") << what;
  };
  ASSERT_TRUE(RemoveFile(Pins("connect4")));
  check("nothing at all");
  ASSERT_TRUE(RemoveFile(Pins("connect4")));
  check("no link");
  ASSERT_TRUE(RemoveFile(Pins("maps-1/services")));
  check("a map that is not pinned");
  ASSERT_EQ(::rename(Pins("maps-1/services").c_str(), Pins("maps-1/services-new").c_str()), 0);
  check("a map under its first name");
  ASSERT_EQ(::mkdir(Pins("maps-0").c_str(), 0700), 0);
  ASSERT_EQ(::rename(Pins("maps-1/sent").c_str(), Pins("maps-0/sent").c_str()), 0);
  check("maps of another layout");
  EXPECT_FALSE(PathExists(Pins("maps-0")));
  // Another cgroup than last time.
  const std::string cgroup = machine_->places().cgroup + "/below";
  ASSERT_EQ(::mkdir(cgroup.c_str(), 0755), 0);
  Datapath below({.cgroup = cgroup, .pin_directory = machine_->places().pins, .node_netns = node_}, true);
  Write(below, plan);
  EXPECT_NE(Ask("pod2", Ip("10.96.0.1")), "pod1") << "this process is above";
  ASSERT_EQ(::rmdir(cgroup.c_str()), 0);
  check("links of a cgroup that has gone");
}

// nodectl reads the map layout itself, and reports missing maps.
TEST_F(SocketsTest, NodectlTellsWhatIsPinned) {
  Plan plan({.v4 = true});
  ResolvedPort sticky = Port("10.96.0.1", {At("pod1"), At("pod2")});
  sticky.service.affinity = std::chrono::hours(3);
  plan.SetService("s", {sticky, Port("10.96.0.2", {At("remote")}, proxy::kUdp)});
  plan.SetNodeIps({ClientAddress("node", true)});
  Datapath sockets = Start();
  Write(sockets, plan);
  auto read = [&] {
    auto families = ctl::ReadEbpfMaps(machine_->places().pins);
    EXPECT_TRUE(families) << families.error().message();
    EXPECT_EQ(families->size(), 1u);
    return families->at(0);
  };
  auto call = [&](const ctl::EbpfMaps& maps, ctl::SocketCall how, const char* ip, uint8_t protocol) {
    return ctl::RunSocketLb(maps, true, how, Ip(ip), protocol, 80);
  };
  const std::string who = Ask("node", Ip("10.96.0.1"));
  UniqueFd datagrams = Socket("node", AF_INET6, SOCK_DGRAM);
  const sockaddr_in6 to = SocketAddress6(Ip("10.96.0.2"), 80);
  ASSERT_EQ(::sendto(datagrams.get(), "who", 3, 0, reinterpret_cast<const sockaddr*>(&to), sizeof to), 3);

  ctl::EbpfMaps maps = read();
  EXPECT_THAT(ctl::SocketLbFaults({maps}, true, "", node_), ::testing::IsEmpty());
  EXPECT_EQ(maps.node_netns, node_);
  EXPECT_EQ(maps.node_port_ips, std::set<IpAddress>{ClientAddress("node", true)});
  EXPECT_EQ(maps.services.size(), plan.Size(proxy::ebpf::kServices));
  EXPECT_EQ(maps.endpoints.size(), 3u);
  EXPECT_EQ(call(maps, ctl::SocketCall::kSend, "10.96.0.2", proxy::kUdp).endpoints,
            std::vector<dataplane::EndpointAddress>({{EndpointAddress("remote", true), kEndpointPort}}));
  EXPECT_EQ(call(maps, ctl::SocketCall::kConnect, "10.96.0.1", proxy::kTcp).endpoints,
            std::vector<dataplane::EndpointAddress>({{EndpointAddress(who, true), kEndpointPort}}))
      << "the node stays with " << who;
  EXPECT_EQ(call(maps, ctl::SocketCall::kConnect, "10.96.0.2", proxy::kTcp).verdict,
            dataplane::kSocketRefuse);
  ASSERT_EQ(maps.flows.size(), 1u);
  ASSERT_EQ(maps.sent.size(), 1u);
  EXPECT_EQ(maps.sent[0].service, (dataplane::ServiceAddress{Ip("10.96.0.2"), proxy::kUdp, 80}));
  EXPECT_EQ(maps.sent[0].endpoint, maps.flows[0].endpoint);
  EXPECT_EQ(maps.sent[0].cookie, maps.flows[0].cookie);

  ASSERT_TRUE(bpf::Link::OpenPinned(Pins("connect4"))->Detach());
  ASSERT_TRUE(RemoveFile(Pins("sendmsg6")));
  ASSERT_TRUE(RemoveFile(Pins("maps-1/services")));
  std::vector<std::string> said;
  for (const ctl::Problem& fault : ctl::SocketLbFaults({read()}, true, "", node_)) {
    said.push_back(fault.message);
  }
  EXPECT_THAT(said, ::testing::UnorderedElementsAre("IPv4: map services is not pinned",
                                                    "IPv4: program sendmsg6 is not pinned",
                                                    "IPv4: program connect4 is attached to nothing"));
  ASSERT_EQ(::rename(Pins("maps-1").c_str(), Pins("maps-9").c_str()), 0);
  EXPECT_THAT(ctl::ReadEbpfMaps(machine_->places().pins).error().message(), ::testing::HasSubstr("maps-9"));
}

TEST_F(SocketsTest, NothingStaysAfterRemoval) {
  Plan plan({.v4 = true});
  plan.SetService("s", {Port("10.96.0.1", {At("pod1")})});
  Datapath sockets = Start();
  EXPECT_TRUE(sockets.Remove()) << "absent is fine";
  Write(sockets, plan);
  EXPECT_EQ(Ask("pod2", Ip("10.96.0.1")), "pod1");
  EXPECT_TRUE(sockets.Remove());
  EXPECT_NE(Ask("pod2", Ip("10.96.0.1")), "pod1");
  EXPECT_FALSE(PathExists(machine_->places().pins + "/v4"));
  Write(sockets, plan);
  EXPECT_EQ(Ask("pod2", Ip("10.96.0.1")), "pod1");
  EXPECT_TRUE(Datapath::RemoveAll(machine_->places().pins));
  EXPECT_NE(Ask("pod2", Ip("10.96.0.1")), "pod1");
}

}  // namespace
}  // namespace keelson::netns
