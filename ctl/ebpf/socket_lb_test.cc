// Sockets that eBPF serves: what is said of them, and what becomes of packets after them.
#include "ctl/proxy/dump.h"
#include "ctl/trace/testing/fake_node.h"

namespace keelson::ctl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr uint8_t kTcp = 6, kUdp = 17;

dataplane::ServiceAddress At(const char* ip, uint16_t port = 80, uint8_t protocol = kTcp) {
  return {Ip(ip), protocol, port};
}

void Serve(EbpfMaps& maps, const dataplane::ServiceAddress& vip, const std::vector<std::string>& endpoints,
           SocketLbService service = {.pods = dataplane::kSocketServe, .node = dataplane::kSocketServe}) {
  service.endpoints = static_cast<uint32_t>(endpoints.size());
  maps.services[vip] = service;
  for (uint32_t slot = 0; slot < service.endpoints; ++slot) {
    if (!endpoints[slot].empty()) maps.endpoints[{vip, slot}] = {Ip(endpoints[slot]), 8080};
  }
}

TEST(RunSocketLb, AsTheProgramsDecide) {
  EbpfMaps maps;
  Serve(maps, At("10.96.0.1"), {"10.244.0.1", "10.244.0.2"});
  Serve(maps, At("10.96.0.1", 53, kUdp), {"10.244.0.3"});
  Serve(maps, {Ip("10.96.0.1"), 0, 0}, {},
        {.pods = dataplane::kSocketRefuse, .node = dataplane::kSocketRefuse});
  Serve(maps, {std::nullopt, kTcp, 30080}, {"10.244.0.4"},
        {.pods = dataplane::kSocketPass, .node = dataplane::kSocketServe});
  Serve(maps, At("10.96.0.2"), {}, {.pods = dataplane::kSocketDrop, .node = dataplane::kSocketDrop});
  Serve(maps, At("10.96.0.3"), {"", ""});  // a list that has just become empty
  maps.node_port_ips = {Ip(kNodeIp)};
  struct Case {
    bool node;
    SocketCall call;
    const char* ip;
    uint8_t protocol;
    uint16_t port;
    dataplane::SocketVerdict verdict;
    size_t endpoints;
  };
  for (const Case& c : {
           Case{false, SocketCall::kConnect, "10.96.0.1", kTcp, 80, dataplane::kSocketServe, 2},
           Case{true, SocketCall::kConnect, "10.96.0.1", kTcp, 80, dataplane::kSocketServe, 2},
           Case{true, SocketCall::kConnect, "10.96.0.1", kTcp, 81, dataplane::kSocketRefuse, 0},
           Case{true, SocketCall::kConnect, "10.96.0.1", 132, 80, dataplane::kSocketPass, 0},
           Case{true, SocketCall::kConnect, "10.96.0.1", kUdp, 53, dataplane::kSocketPass, 0},
           Case{true, SocketCall::kSend, "10.96.0.1", kUdp, 53, dataplane::kSocketServe, 1},
           Case{false, SocketCall::kConnect, kNodeIp, kTcp, 30080, dataplane::kSocketPass, 0},
           Case{true, SocketCall::kConnect, kNodeIp, kTcp, 30080, dataplane::kSocketServe, 1},
           Case{true, SocketCall::kConnect, "10.244.0.9", kTcp, 30080, dataplane::kSocketPass, 0},
           Case{true, SocketCall::kConnect, "10.96.0.2", kTcp, 80, dataplane::kSocketDrop, 0},
           Case{true, SocketCall::kConnect, "10.96.0.3", kTcp, 80, dataplane::kSocketRefuse, 0},
       }) {
    SocketLbOutcome out = RunSocketLb(maps, c.node, c.call, Ip(c.ip), c.protocol, c.port);
    const std::string what = std::string(c.ip) + ":" + std::to_string(c.port) + (c.node ? " node" : " pod");
    EXPECT_EQ(out.verdict, c.verdict) << what << ": " << out.why;
    EXPECT_EQ(out.endpoints.size(), c.endpoints) << what;
    EXPECT_FALSE(out.why.empty());
  }
}

TEST(RunSocketLb, TheNodeStaysWithAnEndpointWhileItsTimeLasts) {
  EbpfMaps maps{.read_at = std::chrono::seconds(1000), .node_netns = 7};
  Serve(maps, At("10.96.0.1"), {"10.244.0.1", "10.244.0.2"},
        {.affinity = std::chrono::seconds(100),
         .pods = dataplane::kSocketServe,
         .node = dataplane::kSocketServe});
  auto endpoints = [&](bool node) {
    return RunSocketLb(maps, node, SocketCall::kConnect, Ip("10.96.0.1"), kTcp, 80).endpoints.size();
  };
  EXPECT_EQ(endpoints(true), 2u);
  maps.affinity = {{.cookie = 7,
                    .service = At("10.96.0.1"),
                    .endpoint = {Ip("10.244.0.2"), 8080},
                    .last_used = std::chrono::seconds(950)}};
  EXPECT_EQ(endpoints(true), 1u);
  EXPECT_EQ(endpoints(false), 2u) << "another client";
  maps.affinity[0].last_used = std::chrono::seconds(900);
  EXPECT_EQ(endpoints(true), 2u) << "its time has passed";
  maps.affinity[0].last_used = std::chrono::seconds(950);
  maps.affinity[0].endpoint.ip = Ip("10.244.0.3");
  EXPECT_EQ(endpoints(true), 2u) << "no endpoint any more";
}

TEST(SocketLbFaults, NameWhatIsMissing) {
  EbpfMaps maps{.node_netns = 7, .programs = {{"connect4", 1}, {"sendmsg4", 0}}, .missing = {"map services"}};
  std::vector<std::string> reasons;
  for (const Problem& fault : SocketLbFaults({maps}, true, "/pins", 8)) reasons.push_back(fault.reason);
  EXPECT_THAT(reasons, ElementsAre("NotPinned", "NotAttached", "OtherNode"));
  EXPECT_THAT(SocketLbFaults({}, false, "/pins", 8), IsEmpty());
  auto nothing = SocketLbFaults({}, true, "/pins", 8);
  ASSERT_EQ(nothing.size(), 1u);
  EXPECT_THAT(nothing[0].message, HasSubstr("/pins"));
}

TEST_F(TraceServiceTest, SocketsChooseAndPacketsGoThere) {
  EbpfMaps& maps = node_.ServeByEbpf();
  Serve(maps, At(kVip), {"10.244.0.2", "10.244.1.2"});
  for (const Source& source : {kPod, kHost}) {
    TracedPath out = Trace(source);
    EXPECT_EQ(out.path.verdict, Path::kDelivered) << source.name;
    EXPECT_THAT(Reasons(out), IsEmpty()) << source.name;
    ASSERT_EQ(out.path.backends.size(), 2u);
    EXPECT_EQ(out.path.backends[1].via, "dev eth0 via 192.0.2.254");
    EXPECT_EQ(out.path.steps[0].chain, "ebpf connect4");
    EXPECT_EQ(out.path.backends[0].steps[0].what, "to 10.244.0.2:8080");
  }
  EXPECT_THAT(Reasons(Trace(kOutside, Frontend::kLoadBalancer)), ElementsAre("NotProgrammed"));
  // A rule of somebody else behind the choice.
  node_.Add(Rule("forward")
                .Load(0, nft::Field::kIpDaddr)
                .Equal(0, nft::Key().Ip(Ip("10.244.0.2")).bytes())
                .Finish({nft::Verdict::Kind::kDrop}));
  TracedPath out = Trace(kPod);
  EXPECT_EQ(out.path.verdict, Path::kDelivered);
  EXPECT_THAT(Reasons(out), ElementsAre("Refused"));
}

TEST_F(TraceServiceTest, WhatSocketsRefuseAndLack) {
  EbpfMaps& maps = node_.ServeByEbpf();
  Serve(maps, At(kVip), {}, {.pods = dataplane::kSocketRefuse, .node = dataplane::kSocketDrop});
  EXPECT_EQ(Trace(kPod).path.verdict, Path::kRejected);
  EXPECT_EQ(Trace(kHost).path.verdict, Path::kDropped);
  EXPECT_THAT(Reasons(Trace(kPod)), ElementsAre("Refused")) << "though there are endpoints";
  Serve(maps, At(kVip), {"10.244.0.2", ""});
  EXPECT_THAT(Reasons(Trace(kPod)), ElementsAre("EmptySlot", "MissingEndpoint"));
  Serve(maps, At(kVip), {"10.244.0.2", "10.244.9.2"});
  EXPECT_THAT(Reasons(Trace(kHost)), ElementsAre("StaleEndpoint", "MissingEndpoint", "NoRoute"));
  // Without its program packets meet the rules.
  maps.programs[0].cgroup = 0;
  node_.Program(kVip, 80, {"10.244.0.2", "10.244.1.2"});
  TracedPath out = Trace(kPod);
  EXPECT_EQ(out.path.steps[0].what, "not attached");
  EXPECT_EQ(out.path.verdict, Path::kDelivered);
  EXPECT_THAT(Reasons(out), IsEmpty());
}

TEST_F(TraceServiceTest, DatagramsBySocketAndByPacket) {
  EbpfMaps& maps = node_.ServeByEbpf();
  Serve(maps, At(kVip, 80, kUdp), {"10.244.0.2"});
  node_.Program(kVip, 80, {"10.244.1.2"});
  const Frontend frontend{Frontend::kClusterIp, Ip(kVip), 80};
  Path sent = FollowPacket(node_, kPod, frontend, kUdp, SocketCall::kSend);
  ASSERT_EQ(sent.backends.size(), 1u);
  EXPECT_EQ(sent.backends[0].ip, Ip("10.244.0.2"));
  Path connected = FollowPacket(node_, kPod, frontend, kUdp, SocketCall::kConnect);
  ASSERT_EQ(connected.backends.size(), 1u);
  EXPECT_EQ(connected.backends[0].ip, Ip("10.244.1.2"));
}

TEST(ProxyDump, SocketsOfModeEbpf) {
  EbpfMaps maps{.read_at = std::chrono::seconds(50), .node_netns = 7, .fill = {{"services", 3, 16384}}};
  Serve(maps, At("10.96.0.1"), {"10.244.0.1", "10.244.0.2"},
        {.affinity = std::chrono::seconds(100),
         .pods = dataplane::kSocketServe,
         .node = dataplane::kSocketServe});
  Serve(maps, {Ip("10.96.0.1"), 0, 0}, {},
        {.pods = dataplane::kSocketRefuse, .node = dataplane::kSocketRefuse});
  Serve(maps, {std::nullopt, kTcp, 30080}, {"10.244.0.1"},
        {.pods = dataplane::kSocketPass, .node = dataplane::kSocketServe});
  maps.affinity = {{7, At("10.96.0.1"), {Ip("10.244.0.2"), 8080}, std::chrono::seconds(40)}};
  maps.flows = {{99, At("10.96.0.1", 53, kUdp), {Ip("10.244.0.2"), 53}, {}}};
  const Dump dump{DumpSocketLb(maps), {maps}, {{"NotAttached", "connect4"}}};
  EXPECT_EQ(ToTable(dump),
            "MODE   PROTOCOL   ADDRESS        FROM                  LEADS TO\n"
            "ebpf   TCP        *:30080        sockets of pods       leaves to packets\n"
            "ebpf   TCP        *:30080        sockets of the node   10.244.0.1:8080\n"
            "ebpf   *          10.96.0.1      sockets               refuses\n"
            "ebpf   TCP        10.96.0.1:80   sockets               10.244.0.1:8080, 10.244.0.2:8080\n"
            "\n"
            "MAP        FAMILY   ENTRIES   ROOM\n"
            "services   IPv4     3         16384\n"
            "\n"
            "CLIENT      OF                 STAYS WITH        FOR\n"
            "node        10.96.0.1:80/TCP   10.244.0.2:8080   90 s\n"
            "socket 99   10.96.0.1:53/UDP   10.244.0.2:53     as long as it is an endpoint\n"
            "PROBLEM NotAttached: connect4\n");
  boost::json::value document = ToDocument(dump);
  EXPECT_EQ(document.at_pointer("/sockets/0/maps/0/maxEntries").as_uint64(), 16384u);
  EXPECT_EQ(document.at_pointer("/sockets/0/affinity/0/secondsLeft").as_int64(), 90);
  EXPECT_EQ(document.at_pointer("/services/3/endpoints/1/address").as_string(), "10.244.0.2");
  EXPECT_EQ(document.at_pointer("/problems/0/reason").as_string(), "NotAttached");
}

}  // namespace
}  // namespace keelson::ctl
