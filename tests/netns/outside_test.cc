// Outside clients served by programs on the node's devices: that the programs serve them, and their state.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "ctl/ebpf/external_packet.h"
#include "lib/base/file.h"
#include "lib/bpf/tc.h"
#include "lib/netlink/link.h"
#include "lib/netlink/tc/clsact.h"
#include "tests/netns/outside_node.h"

namespace keelson::netns {
namespace {

using proxy::ResolvedPort;
using proxy::ebpf::Datapath;
using proxy::ebpf::DetachFilters;
using proxy::ebpf::Plan;

class OutsideTest : public OutsideNodeTest {
 protected:
  bool HasClsact(const std::string& device) {
    netlink::Socket socket = *netlink::Socket::OpenIn(world_->node());
    return *netlink::HasClsact(socket, netlink::GetLink(socket, device)->index);
  }
  std::string Filter(const std::string& device, bool ingress, bool v4 = true) {
    std::string out;
    EXPECT_TRUE(world_->node().Run([&]() -> Result<> {
      KEELSON_ASSIGN_OR_RETURN(netlink::Socket socket, netlink::Socket::Open());
      KEELSON_ASSIGN_OR_RETURN(netlink::Link link, netlink::GetLink(socket, device));
      KEELSON_ASSIGN_OR_RETURN(std::optional<std::string> name,
                               bpf::TcProgramAt({link.index, ingress, v4 ? 19204u : 19206u}));
      out = name.value_or("");
      return {};
    }));
    return out;
  }
};

TEST_F(OutsideTest, ServesWithoutAnyRules) {
  for (bool v4 : {true, false}) {
    const std::string self = ClientAddress("outside", v4).ToString();
    for (auto [to, port, protocol] :
         {std::tuple(ClientAddress("node", v4), uint16_t{30080}, proxy::kTcp),
          std::tuple(ClientAddress("node", v4), uint16_t{30080}, proxy::kUdp),
          std::tuple(Ip(v4 ? "192.0.2.1" : "fd99::1"), uint16_t{80}, proxy::kTcp),
          std::tuple(Ip(v4 ? "192.0.2.1" : "fd99::1"), uint16_t{80}, proxy::kUdp)}) {
      Plan plan = MakePlan(v4);
      plan.SetService("s", {Local({At("pod1", v4), At("pod2", v4)}, v4, protocol)});
      Datapath sockets = Start(v4);
      Write(sockets, plan);
      std::set<std::string> got;
      for (int i = 0; i < 32; ++i) got.insert(Ask(To("outside", to, port, protocol)));
      EXPECT_THAT(got, ::testing::ElementsAre("pod1 " + self, "pod2 " + self)) << to.ToString();
      EXPECT_GE(Remembered(v4), 2u * 30) << "two for each, but for a port that has come twice";
      // State expires: otherwise a reused port would belong to the earlier connection.
      EXPECT_TRUE(sockets.Remove());
    }
  }
}

TEST_F(OutsideTest, DevicesAreThoseOfTheOutside) {
  Plan plan = MakePlan();
  Datapath sockets = Start();
  Write(sockets, plan);
  for (const char* device : {"outside", "other"}) {
    EXPECT_EQ(Filter(device, true), "from_outside") << device;
    EXPECT_EQ(Filter(device, false), "to_outside") << device;
  }
  EXPECT_EQ(Filter("br0", true), "");
  // A device comes, and one is not of the outside any more.
  ASSERT_TRUE(OnNode("ip link add more type veth peer name less && ip addr add 192.0.2.77/24 dev more"));
  ASSERT_TRUE(OnNode("ip addr flush dev other"));
  Write(sockets, plan);
  EXPECT_EQ(Filter("more", true), "") << "nobody has told";
  sockets.LookAtDevices();
  Write(sockets, plan);
  EXPECT_EQ(Filter("more", true), "from_outside");
  EXPECT_EQ(Filter("other", true), "");
  EXPECT_EQ(Filter("other", false), "");
  EXPECT_TRUE(sockets.Remove());
  EXPECT_EQ(Filter("more", true), "");
}

TEST_F(OutsideTest, WhatOthersTakeAwayComesBack) {
  Plan plan = MakePlan();
  plan.SetService("s", {Local({At("pod1")})});
  Datapath sockets = Start();
  Write(sockets, plan);
  const std::string asked = Ask(To("outside", Ip("192.0.2.1"), 80));
  EXPECT_THAT(asked, ::testing::StartsWith("pod1 "));
  for (const char* harm : {"tc filter del dev outside ingress", "tc filter del dev outside egress",
                           "tc qdisc del dev outside clsact"}) {
    ASSERT_TRUE(OnNode(harm));
    EXPECT_NE(Ask(To("outside", Ip("192.0.2.1"), 80)), asked) << harm;
    sockets.LookAtDevices();
    Write(sockets, plan);
    EXPECT_FALSE(last_.compared);
    EXPECT_EQ(Ask(To("outside", Ip("192.0.2.1"), 80)), asked) << harm;
  }
}

// What hangs on devices beside our filters: a discipline goes with the last of its filters, if it is ours.
TEST_F(OutsideTest, DisciplinesGoWithTheLastFilter) {
  ASSERT_TRUE(OnNode("tc qdisc add dev other clsact")) << "somebody's";
  Plan plan = MakePlan(), plan6 = MakePlan(false);
  auto both = [&](auto body) {
    Datapath v4 = Start(), v6 = Start(false);
    Write(v4, plan);
    Write(v6, plan6);
    body(v4, v6);
  };
  both([&](Datapath& v4, Datapath& v6) {
    EXPECT_TRUE(v4.Remove());
    EXPECT_TRUE(HasClsact("outside")) << "the other family has filters there";
    EXPECT_TRUE(v6.Remove());
    EXPECT_FALSE(HasClsact("outside"));
    EXPECT_TRUE(HasClsact("other"));
  });
  both([&](Datapath&, Datapath&) {});
  both([&](Datapath& v4, Datapath& v6) {  // of a process that came later
    ASSERT_TRUE(OnNode("tc filter add dev outside egress prio 7 bpf bytecode '1,6 0 0 0,'"));
    EXPECT_TRUE(v4.Remove());
    EXPECT_TRUE(v6.Remove());
    EXPECT_TRUE(HasClsact("outside")) << "somebody has filters there";
    ASSERT_TRUE(OnNode("tc filter del dev outside egress"));
  });
  ASSERT_TRUE(world_->node().Run([&] { return DetachFilters(machine_->places().pins); }));
  EXPECT_FALSE(HasClsact("outside"));
  EXPECT_TRUE(HasClsact("other"));
  EXPECT_FALSE(PathExists(machine_->places().pins + "/clsact"));
}

TEST_F(OutsideTest, ConnectionsOutliveProxiesAndEndpoints) {
  Plan plan = MakePlan();
  plan.SetService("s", {Local({At("pod1"), At("pod2")})});
  std::vector<Conversation> open;
  {
    Datapath sockets = Start();
    Write(sockets, plan);
    for (int i = 0; i < 50; ++i) {
      auto one = Conversation::Open(world_->Place("outside"), To("outside", Ip("192.0.2.1"), 80));
      ASSERT_TRUE(one) << one.error().message();
      open.push_back(std::move(*one));
    }
  }
  EXPECT_TRUE(open[0].Echoes()) << "nobody is there";
  Plan fewer = MakePlan();
  fewer.SetService("s", {Local({At("pod2")})});
  Datapath sockets = Start();
  Write(sockets, fewer);
  for (Conversation& one : open) EXPECT_TRUE(one.Echoes());
  EXPECT_THAT(Ask(To("outside", Ip("192.0.2.1"), 80)), ::testing::StartsWith("pod2 "));
  // During a switch to another mode existing clients stay, and new ones are not accepted.
  auto gone = sockets.Retire();
  ASSERT_TRUE(gone) << gone.error().message();
  EXPECT_FALSE(*gone);
  for (Conversation& one : open) EXPECT_TRUE(one.Echoes());
  EXPECT_THAT(Ask(To("outside", Ip("192.0.2.1"), 80)), ::testing::Not(::testing::StartsWith("pod")));
  // And back.
  Datapath again = Start();
  Write(again, fewer);
  for (Conversation& one : open) EXPECT_TRUE(one.Echoes());
  EXPECT_THAT(Ask(To("outside", Ip("192.0.2.1"), 80)), ::testing::StartsWith("pod2 "));
  EXPECT_TRUE(again.Remove());
  EXPECT_EQ(Filter("outside", true), "");
  EXPECT_EQ(Remembered(), 0u);
}

TEST_F(OutsideTest, AffinityGoesByClient) {
  Plan plan = MakePlan();
  ResolvedPort port = Local({At("pod1"), At("pod2")});
  port.service.affinity = std::chrono::seconds(100);
  plan.SetService("s", {port});
  Datapath sockets = Start();
  Write(sockets, plan);
  std::set<std::string> got;
  for (int i = 0; i < 12; ++i) got.insert(Ask(To("outside", Ip("192.0.2.1"), 80)));
  ASSERT_EQ(got.size(), 1u);
  // Its endpoint goes, and comes again: the client stays where it has gone.
  const bool first = got.begin()->starts_with("pod1");
  port.local = port.cluster = {At(first ? "pod2" : "pod1")};
  plan.SetService("s", {port});
  Write(sockets, plan);
  const std::string other = Ask(To("outside", Ip("192.0.2.1"), 80));
  EXPECT_THAT(other, ::testing::StartsWith(first ? "pod2" : "pod1"));
  port.local = port.cluster = {At("pod1"), At("pod2")};
  plan.SetService("s", {port});
  Write(sockets, plan);
  for (int i = 0; i < 8; ++i) EXPECT_EQ(Ask(To("outside", Ip("192.0.2.1"), 80)), other);
}

TEST_F(OutsideTest, SourceRangesLetIn) {
  Plan plan = MakePlan();
  ResolvedPort port = Local({At("pod1")});
  port.service.load_balancer_ips = {Ip("198.51.100.1")};
  port.service.source_ranges = {IpPrefix::Host(ClientAddress("stranger", true))};
  plan.SetService("s", {port});
  Datapath sockets = Start();
  Write(sockets, plan);
  EXPECT_THAT(Ask(To("stranger", Ip("198.51.100.1"), 80)), ::testing::StartsWith("pod1 "));
  EXPECT_THAT(Ask(To("outside", Ip("198.51.100.1"), 80)), ::testing::Not(::testing::StartsWith("pod")));
  EXPECT_THAT(Ask(To("outside", Ip("192.0.2.1"), 80)), ::testing::StartsWith("pod1 "));
}

// Datagrams of one socket, after their endpoint has gone.
TEST_F(OutsideTest, DatagramsLeaveEndpointsThatHaveGone) {
  Plan plan = MakePlan();
  plan.SetService("s", {Local({At("pod1")}, true, proxy::kUdp)});
  Datapath sockets = Start();
  Write(sockets, plan);
  proxy::UdpClient client(world_->Place("outside"));
  EXPECT_THAT(client.Ask(Ip("192.0.2.1"), 80), ::testing::StartsWith("pod1 "));
  plan.SetService("s", {Local({At("pod2")}, true, proxy::kUdp)});
  Write(sockets, plan);
  EXPECT_THAT(client.Ask(Ip("192.0.2.1"), 80), ::testing::StartsWith("pod2 "));
}

// What nodectl reads of it.
TEST_F(OutsideTest, NodectlSeesDevicesChoicesAndConnections) {
  for (bool v4 : {true, false}) {
    const IpAddress to = Ip(v4 ? "192.0.2.1" : "fd99::1");
    Plan plan = MakePlan(v4);
    ResolvedPort port = Local({At("pod1", v4), At("pod2", v4)}, v4);
    port.service.affinity = std::chrono::seconds(100);
    port.service.load_balancer_ips = {Ip(v4 ? "198.51.100.1" : "fd98::1")};
    port.service.source_ranges = {IpPrefix::Host(ClientAddress("stranger", v4))};
    plan.SetService("s", {port});
    Datapath sockets = Start(v4);
    Write(sockets, plan);
    auto open = Conversation::Open(world_->Place("outside"), To("outside", to, 80));
    ASSERT_TRUE(open) << open.error().message();
    std::vector<ctl::EbpfMaps> read;
    ASSERT_TRUE(world_->node().Run([&]() -> Result<> {
      KEELSON_ASSIGN_OR_RETURN(read, ctl::ReadEbpfMaps(machine_->places().pins));
      return {};
    }));
    ASSERT_EQ(read.size(), 1u);
    const ctl::EbpfMaps& maps = read[0];
    EXPECT_EQ(maps.v4, v4);
    EXPECT_THAT(ctl::ExternalFaults(read), ::testing::IsEmpty());
    const ctl::ExternalDevice* device = maps.external.Device("outside");
    ASSERT_NE(device, nullptr);
    EXPECT_TRUE(device->served && device->ingress_filter && device->egress_filter);
    auto flows = ctl::NatFlows(maps, proxy::kTcp);
    ASSERT_EQ(flows.size(), 1u);
    EXPECT_EQ(flows[0].destination, to);
    EXPECT_EQ(flows[0].source, ClientAddress("outside", v4));
    auto meet = [&](const char* client, const IpAddress& ip, uint16_t at) {
      return ctl::RunIngressFilter(
          maps, {.link = "outside", .client = ClientAddress(client, v4), .to = ip, .port = at});
    };
    const ctl::FilterOutcome kept = meet("outside", to, 80), fresh = meet("stranger", to, 80);
    ASSERT_EQ(kept.choices.size(), 1u) << kept.why;
    EXPECT_EQ(kept.choices[0].endpoint.ip, flows[0].replier);
    ASSERT_EQ(fresh.choices.size(), 2u) << fresh.why;
    EXPECT_NEAR(fresh.choices[0].percent, 50, 10);
    EXPECT_TRUE(meet("outside", ClientAddress("node", v4), 30080).served);
    EXPECT_TRUE(meet("stranger", port.service.load_balancer_ips[0], 80).served);
    EXPECT_FALSE(meet("outside", port.service.load_balancer_ips[0], 80).served);
    EXPECT_FALSE(meet("remote", to, 80).served) << "a pod";
    ASSERT_TRUE(OnNode("tc filter del dev outside ingress"));
    ASSERT_TRUE(world_->node().Run([&] { return ctl::ReadFilters(v4, read[0].external); }));
    EXPECT_EQ(ctl::ExternalFaults(read).size(), 1u);
    EXPECT_TRUE(sockets.Remove());
  }
}

// An endpoint with a closed port answers by ICMP.
TEST_F(OutsideTest, ErrorsAreHeard) {
  for (bool v4 : {true, false}) {
    Plan plan = MakePlan(v4);
    plan.SetService("s", {Local({{EndpointAddress("pod1", v4), 9999, true}}, v4, proxy::kUdp)});
    Datapath sockets = Start(v4);
    Write(sockets, plan);
    const Question question = To("outside", Ip(v4 ? "192.0.2.1" : "fd99::1"), 80, proxy::kUdp);
    EXPECT_EQ(Ask(question), std::strerror(ECONNREFUSED));
    EXPECT_TRUE(sockets.Remove());
  }
}

}  // namespace
}  // namespace keelson::netns
