// Clients outside of the cluster, with eBPF at devices: the filter's decision and its explanation.
#include "ctl/ebpf/external_packet.h"

#include <functional>

#include "ctl/proxy/dump.h"
#include "ctl/trace/testing/fake_node.h"

namespace keelson::ctl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

constexpr uint8_t kTcp = 6, kUdp = 17;
constexpr char kLoadBalancer[] = "198.51.100.7", kClient[] = "203.0.113.5";

// A Service of two endpoints at a load balancer address, the second one three times as often; and a NodePort
// of policy Local.
void Serve(EbpfMaps& maps) {
  maps.external.devices[2] = {
      .link = "eth0", .served = true, .ingress_filter = true, .egress_filter = true, .mtu = 1500};
  const dataplane::ServiceAddress vip{Ip(kLoadBalancer), kTcp, 80}, node_port{std::nullopt, kTcp, 30080};
  maps.external.services[vip] = {.endpoints = 2, .maglev_chunks = 1, .masquerade = true};
  maps.external.maglev[{vip, 0}] = {0, 1, 1, 1};
  maps.endpoints[{vip, 0}] = {Ip("10.244.0.2"), 8080};
  maps.endpoints[{vip, 1}] = {Ip("10.244.1.2"), 8080};
  maps.external.services[node_port] = {.endpoints = 1, .first_slot = 0x10000};
  maps.endpoints[{node_port, 0x10000}] = {Ip("10.244.0.2"), 8080};
  maps.node_port_ips = {Ip(kNodeIp)};
}

ExternalPacket Packet(const char* to = kLoadBalancer, uint16_t port = 80) {
  return {.link = "eth0", .client = Ip(kClient), .to = Ip(to), .protocol = kTcp, .port = port};
}

TEST(RunIngressFilter, AsTheProgramDecides) {
  struct Case {
    const char* what;
    std::function<void(EbpfMaps&, ExternalPacket&)> change;
    bool served;
    const char* why;
  };
  const dataplane::ServiceAddress vip{Ip(kLoadBalancer), kTcp, 80};
  for (const Case& c : {
           Case{"as it is", [](auto&, auto&) {}, true, "has 2 endpoint(s) by Maglev"},
           Case{"NodePort", [](auto&, auto&p) { p = Packet(kNodeIp, 30080); }, true, "has 1 endpoint(s)"},
           Case{"no NodePort here", [](auto&, auto&p) { p = Packet(kLoadBalancer, 30080); }, false,
                "is not in outside"},
           Case{"other device", [](auto&, auto&p) { p.link = "eth1"; }, false, "eth1 is not one"},
           Case{"no filter", [](auto&m, auto&) { m.external.devices[2].ingress_filter = false; }, false,
                "not attached"},
           Case{"not in the map", [](auto&m, auto&) { m.external.devices[2].served = false; }, false,
                "not one"},
           Case{"SCTP", [](auto&, auto&p) { p.protocol = 132; }, false, "only TCP and UDP"},
           Case{"draining", [](auto&m, auto&) { m.external.draining = true; }, false, "being left"},
           Case{"a pod", [](auto&m, auto&) { m.external.pods = {*IpPrefix::Parse("203.0.113.0/24")}; }, false,
                "a pod's address"},
           Case{"not admitted", [&](auto&m, auto&) { m.external.services[vip].limited = true; }, false,
                "in none of the source_ranges"},
           Case{"admitted",
                [&](auto&m, auto&) {
                  m.external.services[vip].limited = true;
                  m.external.source_ranges = {{vip, *IpPrefix::Parse("203.0.113.0/29")}};
                },
                true, "by Maglev"},
           Case{"no endpoint", [](auto&m, auto&) { m.endpoints.clear(); }, false, "none of which"},
       }) {
    EbpfMaps maps;
    Serve(maps);
    ExternalPacket packet = Packet();
    c.change(maps, packet);
    const FilterOutcome out = RunIngressFilter(maps, packet);
    EXPECT_EQ(out.served, c.served) << c.what << ": " << out.why;
    EXPECT_EQ(out.served, !out.choices.empty()) << c.what;
    EXPECT_THAT(out.why, HasSubstr(c.why)) << c.what;
  }
}

TEST(RunIngressFilter, TheTableSaysHowOften) {
  EbpfMaps maps{.read_at = std::chrono::seconds(1000)};
  Serve(maps);
  FilterOutcome out = RunIngressFilter(maps, Packet());
  ASSERT_EQ(out.choices.size(), 2u);
  EXPECT_EQ(out.choices[0].percent, 25);
  EXPECT_EQ(out.choices[1].percent, 75);
  EXPECT_TRUE(out.masquerade);
  // A list that has just become shorter: the first one takes over.
  const dataplane::ServiceAddress vip{Ip(kLoadBalancer), kTcp, 80};
  maps.endpoints.erase({vip, 1});
  out = RunIngressFilter(maps, Packet());
  ASSERT_EQ(out.choices.size(), 1u);
  EXPECT_EQ(out.choices[0].percent, 100);
  EXPECT_FALSE(out.misses);
  // Who stays with an endpoint, and whose time has passed.
  Serve(maps);
  maps.external.services[vip].affinity = std::chrono::seconds(100);
  maps.external.affinity = {{vip, Ip(kClient), {Ip("10.244.0.2"), 8080}, std::chrono::seconds(950)}};
  EXPECT_EQ(RunIngressFilter(maps, Packet()).choices.size(), 1u);
  maps.external.affinity[0].last_used = std::chrono::seconds(899);
  EXPECT_EQ(RunIngressFilter(maps, Packet()).choices.size(), 2u);
}

TEST(NatFlows, AreThoseThatHaveNotEnded) {
  EbpfMaps maps{.read_at = std::chrono::seconds(1000)};
  const dataplane::EndpointAddress service{Ip(kLoadBalancer), 80}, endpoint{Ip("10.244.0.2"), 8080};
  auto remember = [&](uint16_t port, uint8_t protocol, dataplane::Nat there, dataplane::Nat back) {
    const dataplane::EndpointAddress client{Ip(kClient), port};
    there.source = back.destination = client;
    there.destination = endpoint;
    back.source = service;
    back.reply = true;
    maps.external.connections[{protocol, client, service}] = there;
    maps.external.connections[{protocol, endpoint, client}] = back;
  };
  auto used = [](int at) { return dataplane::Nat{.last_used = std::chrono::seconds(at)}; };
  dataplane::Nat reset = used(999), finished = used(999);
  reset.reset = finished.finished = true;
  remember(1, kTcp, used(990), used(991));
  remember(2, kTcp, reset, used(991));
  remember(3, kTcp, finished, used(991));
  remember(4, kTcp, finished, finished);
  remember(5, kTcp, used(870), {});  // unanswered
  remember(6, kUdp, used(810), used(821));
  remember(7, kUdp, used(810), used(819));
  std::vector<int> ports;
  for (uint8_t protocol : {kTcp, kUdp}) {
    for (const netlink::Flow& flow : NatFlows(maps, protocol)) {
      EXPECT_EQ(flow.destination, service.ip);
      EXPECT_EQ(flow.replier, endpoint.ip);
      ports.push_back(flow.source_port);
    }
  }
  EXPECT_THAT(ports, ElementsAre(1, 3, 6));
}

std::vector<std::string> ReasonsOf(const std::vector<Problem>& problems) {
  std::vector<std::string> out;
  for (const Problem& problem : problems) out.push_back(problem.reason);
  return out;
}

TEST(ExternalFaults, NameWhatIsMissing) {
  EbpfMaps maps;
  EXPECT_THAT(ExternalFaults({maps}), IsEmpty());
  Serve(maps);
  EXPECT_THAT(ExternalFaults({maps}), IsEmpty());
  maps.external.devices[2].ingress_filter = false;
  maps.external.devices[3] = {.link = "eth1", .served = true, .ingress_filter = true};
  maps.external.devices[4] = {.link = "eth2", .ingress_filter = true, .egress_filter = true};
  maps.external.missing = {"map maglev"};
  EXPECT_THAT(ReasonsOf(ExternalFaults({maps})),
              ElementsAre("NotPinned", "NotAttached", "NotAttached", "NotServed"));
  maps.external.missing.clear();
  maps.external.devices.clear();
  EXPECT_THAT(ReasonsOf(ExternalFaults({maps})), ElementsAre("NotServed"));
}

TEST_F(TraceServiceTest, FiltersChooseAndPacketsGoThere) {
  EbpfMaps& maps = node_.ServeByEbpf();
  Serve(maps);
  TracedPath out = Trace(kOutside, Frontend::kLoadBalancer);
  EXPECT_EQ(out.path.verdict, Path::kDelivered);
  EXPECT_THAT(Reasons(out), IsEmpty());
  ASSERT_EQ(out.path.backends.size(), 2u);
  EXPECT_EQ(out.path.steps[0].chain, "ebpf from_outside eth0");
  EXPECT_EQ(out.path.backends[0].steps[0].what, "to 10.244.0.2:8080 (25 %)");
  EXPECT_FALSE(out.path.backends[0].masqueraded) << "no rule does it";
  EXPECT_EQ(out.path.backends[1].via, "dev eth0 via 192.0.2.254");
  // The rules know the mark.
  node_.Add(Rule("postrouting").AnyBit(Field::kMark, 0x4000).Masquerade());
  out = Trace(kOutside, Frontend::kLoadBalancer);
  ASSERT_EQ(out.path.backends.size(), 2u);
  EXPECT_TRUE(out.path.backends[0].masqueraded);
  // A rule of somebody else behind the choice, and one endpoint too many.
  node_.Put("drop", Key().Ip(Ip("10.244.1.2")).Port(8080));
  EXPECT_THAT(Reasons(Trace(kOutside, Frontend::kLoadBalancer)), ElementsAre("Refused"));
  endpoints_.pop_back();
  EXPECT_THAT(Reasons(Trace(kOutside, Frontend::kLoadBalancer)),
              UnorderedElementsAre("StaleEndpoint", "Refused"));
}

TEST_F(TraceServiceTest, WhatFiltersLeaveMeetsTheRules) {
  EbpfMaps& maps = node_.ServeByEbpf();
  Serve(maps);
  maps.external.devices[2].ingress_filter = false;
  node_.Program(kLoadBalancer, 80, {"10.244.0.2", "10.244.1.2"});
  TracedPath out = Trace(kOutside, Frontend::kLoadBalancer);
  EXPECT_EQ(out.path.verdict, Path::kDelivered);
  EXPECT_EQ(out.path.steps[0].what, "not attached");
  EXPECT_EQ(out.path.steps.back().chain.substr(0, 3), "ip ");
  EXPECT_THAT(ReasonsOf(JudgeEbpf(node_, kOutside, "/pins", 7)), ElementsAre("NotAttached"));
}

TEST_F(TraceServiceTest, AnswersNeedAFilterWhereTheyLeave) {
  EbpfMaps& maps = node_.ServeByEbpf();
  Serve(maps);
  maps.external.devices[3] = {.link = "eth1", .served = true, .ingress_filter = true, .egress_filter = true};
  maps.external.devices[2].egress_filter = false;
  Source source = kOutside;
  source.link = "eth1";
  TracedPath out = Trace(source, Frontend::kLoadBalancer);
  EXPECT_EQ(out.path.steps[0].chain, "ebpf from_outside eth1");
  EXPECT_THAT(Reasons(out), ElementsAre("AnswersNotTranslated"));
}

TEST_F(TraceServiceTest, OtherNodesEndpointsMayBeReachedPastTheRules) {
  EbpfMaps& maps = node_.ServeByEbpf();
  Serve(maps);
  maps.external.devices[2].direct_source = Ip(kNodeIp);
  node_.Put("drop", Key().Ip(Ip("10.244.1.2")).Port(8080));
  TracedPath out = Trace(kOutside, Frontend::kLoadBalancer);
  EXPECT_THAT(Reasons(out), IsEmpty()) << "no rule is asked";
  ASSERT_EQ(out.path.backends.size(), 2u);
  EXPECT_TRUE(out.path.backends[1].masqueraded);
  EXPECT_EQ(out.path.backends[1].steps.back().what, "sent on at once, from 192.0.2.1");
  maps.external.devices[2].mtu = 0;
  EXPECT_THAT(Reasons(Trace(kOutside, Frontend::kLoadBalancer)), ElementsAre("Refused"));
}

TEST(ProxyDump, DevicesOfModeEbpf) {
  EbpfMaps maps{.read_at = std::chrono::seconds(50)};
  Serve(maps);
  const dataplane::ServiceAddress vip{Ip(kLoadBalancer), kTcp, 80};
  maps.external.services[vip].affinity = std::chrono::seconds(100);
  maps.external.services[vip].limited = true;
  maps.external.affinity = {{vip, Ip(kClient), {Ip("10.244.0.2"), 8080}, std::chrono::seconds(40)}};
  maps.external.devices[3] = {
      .link = "eth1", .served = true, .ingress_filter = true, .direct_source = Ip(kNodeIp), .xdp = true};
  const Dump dump{DumpExternal(maps), {maps}, {}};
  EXPECT_EQ(ToTable(dump),
            "MODE   PROTOCOL   ADDRESS           FROM               LEADS TO\n"
            "ebpf   TCP        *:30080           devices            10.244.0.2:8080\n"
            "ebpf   TCP        198.51.100.7:80   devices, limited   10.244.0.2:8080, 10.244.1.2:8080\n"
            "\n"
            "DEVICE   FAMILY   SERVED   IN    OUT   SENDS ON\n"
            "eth0     IPv4     yes      yes   yes   no\n"
            "eth1     IPv4     yes      yes   no    from 192.0.2.1, by its driver\n"
            "\n"
            "CLIENT OUTSIDE   OF                    STAYS WITH        FOR\n"
            "203.0.113.5      198.51.100.7:80/TCP   10.244.0.2:8080   90 s\n");
  boost::json::value document = ToDocument(dump);
  EXPECT_EQ(document.at_pointer("/outside/0/devices/1/toOutside").as_bool(), false);
  EXPECT_EQ(document.at_pointer("/outside/0/affinity/0/secondsLeft").as_int64(), 90);
}

}  // namespace
}  // namespace keelson::ctl
