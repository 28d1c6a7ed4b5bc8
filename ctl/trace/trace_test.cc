#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ctl/trace/report.h"

namespace keelson::ctl {
namespace {

using nft::Field;
using nft::Key;
using nft::Rule;
using nft::Type;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

IpAddress Ip(const std::string& text) { return *IpAddress::Parse(text); }

constexpr char kNode[] = "node1", kNodeIp[] = "192.0.2.1", kVip[] = "10.96.0.7";

// A node with the pods 10.244.0.0/24 on a bridge, those of node2 behind a gateway, and a table that sends to
// its endpoints what is for the addresses in it, drops what is in @drop, and rejects what is in @reject.
class FakeNode : public NodeView {
 public:
  FakeNode() {
    nft::Ruleset& contents = tables_[0].contents;
    contents.table = {nft::Family::kIpv4, "services"};
    Base("nat-prerouting", nft::HookType::kNat, nft::HookPoint::kPrerouting, -100);
    Base("nat-output", nft::HookType::kNat, nft::HookPoint::kOutput, -100);
    Base("forward", nft::HookType::kFilter, nft::HookPoint::kForward, -90);
    Base("postrouting", nft::HookType::kNat, nft::HookPoint::kPostrouting, 100);
    contents.sets["endpoints"].set = {.name = "endpoints",
                                      .key = {Type::kIpv4Addr, Type::kInetService, Type::kMark},
                                      .data = {Type::kIpv4Addr, Type::kInetService}};
    for (const char* name : {"vips", "drop", "reject"}) {
      contents.sets[name].set = {.name = name, .key = {Type::kIpv4Addr, Type::kInetService}};
    }
    contents.sets["masquerade"].set = {.name = "masquerade", .key = {Type::kIpv4Addr, Type::kIpv4Addr}};
    for (const char* chain : {"nat-prerouting", "nat-output"}) Add(Rule(chain).Finish(nft::Jump("services")));
    Add(ToVip("services").InSet(0, "vips").Finish(nft::Goto("pick")));
    Add(ToVip("forward").InSet(0, "drop").Finish({nft::Verdict::Kind::kDrop}));
    Add(ToVip("forward").InSet(0, "reject").RejectTcpReset());
    Rule hairpin("postrouting");
    hairpin.Load(0, Field::kIpSaddr).Load(1, Field::kIpDaddr).InSet(0, "masquerade");
    Add(hairpin.Masquerade());
  }

  // The kernel's part of a Service with these endpoints; `slots` are drawn from.
  void Program(const std::string& vip, uint16_t port, const std::vector<std::string>& endpoints,
               uint32_t slots = 0) {
    if (slots == 0) slots = static_cast<uint32_t>(endpoints.size());
    tables_[0].programs["pick"].clear();
    Add(ToVip("pick").Random(2, slots).Map(0, "endpoints", 0).Dnat(nft::Family::kIpv4, 0, 1));
    Put("vips", Key().Ip(Ip(vip)).Port(port));
    for (uint32_t slot = 0; slot < endpoints.size(); ++slot) {
      Put("endpoints", Key().Ip(Ip(vip)).Port(port).Mark(slot),
          Key().Ip(Ip(endpoints[slot])).Port(8080).bytes());
    }
  }
  void Base(const char* name, nft::HookType type, nft::HookPoint point, int priority) {
    tables_[0].contents.chains[name].chain = {.name = name, .hook = nft::Hook{type, point, priority}};
  }
  void Add(const Rule& rule) { tables_[0].programs[rule.chain()].push_back({rule.exprs(), ""}); }
  void AddNotUnderstood(const char* chain, const char* what) {
    tables_[0].programs[chain].push_back({{}, what});
  }
  void AddAddress(const IpAddress& ip) { addresses_.push_back(ip); }
  void Put(const std::string& set, const Key& key, const std::string& data = "") {
    tables_[0].contents.sets[set].elements[key.bytes()] = {.key = key.bytes(), .data = data};
  }

  const std::vector<nft::LiveTable>& tables() const override { return tables_; }
  const std::vector<IpAddress>& addresses() const override { return addresses_; }
  Result<Hop> Route(const IpAddress& to) override {
    if (IsLocal(to)) return Hop{true, "lo", std::nullopt, to};
    if (IpPrefix::Parse("10.244.0.0/24")->Contains(to))
      return Hop{false, "cni0", std::nullopt, Ip("10.244.0.1")};
    if (IpPrefix::Parse("10.244.9.0/24")->Contains(to)) return Error::FromErrno(ENETUNREACH, "look up route");
    return Hop{false, "eth0", Ip("192.0.2.254"), Ip(kNodeIp)};
  }
  Result<std::vector<netlink::Flow>> Flows(bool, uint8_t) override { return std::vector<netlink::Flow>(); }
  std::optional<Balancer> FindBalancer(const netlink::ServerAddress& address) override {
    auto found = balancers_.find(address);
    return found == balancers_.end() ? std::nullopt : std::optional(found->second);
  }
  // "10.244.0.2*0": takes no new connections.
  void Balance(const std::string& vip, uint16_t port, const std::vector<std::string>& destinations) {
    Balancer& out = balancers_[{6, Ip(vip), port}];
    out.scheduler = "rr";
    for (const std::string& text : destinations) {
      const size_t star = std::min(text.find('*'), text.size());
      netlink::FoundDestination one;
      one.destination = {
          .ip = Ip(text.substr(0, star)), .port = 8080, .weight = star < text.size() ? 0u : 1u};
      out.destinations.push_back(one);
    }
  }

 private:
  static Rule ToVip(const char* chain) {
    return Rule(chain).Load(0, Field::kIpDaddr).Load(1, Field::kDestinationPort);
  }
  std::vector<nft::LiveTable> tables_ = std::vector<nft::LiveTable>(1);
  std::vector<IpAddress> addresses_ = {Ip(kNodeIp)};
  std::map<netlink::ServerAddress, Balancer> balancers_;
};

corev1::Service MakeService() {
  corev1::Service out;
  out.mutable_metadata()->set_namespace_("default");
  out.mutable_metadata()->set_name("web");
  auto& spec = *out.mutable_spec();
  spec.set_type("LoadBalancer");
  spec.set_cluster_ip(kVip);
  spec.add_cluster_ips(kVip);
  (*spec.mutable_selector())["app"] = "web";
  auto& port = *spec.add_ports();
  port.set_name("http");
  port.set_port(80);
  port.set_node_port(30080);
  out.mutable_status()->mutable_load_balancer()->add_ingress()->set_ip("198.51.100.7");
  return out;
}

struct SliceEndpoint {
  const char* ip;
  const char* node;
  bool ready = true;
  bool terminating = false;
};

discoveryv1::EndpointSlice MakeSlice(const std::vector<SliceEndpoint>& endpoints) {
  discoveryv1::EndpointSlice out;
  out.set_address_type("IPv4");
  auto& port = *out.add_ports();
  port.set_name("http");
  port.set_port(8080);
  for (const SliceEndpoint& from : endpoints) {
    auto& to = *out.add_endpoints();
    to.add_addresses(from.ip);
    to.set_node_name(from.node);
    to.mutable_conditions()->set_ready(from.ready);
    to.mutable_conditions()->set_serving(from.ready || from.terminating);
    to.mutable_conditions()->set_terminating(from.terminating);
    to.mutable_target_ref()->set_kind("Pod");
    to.mutable_target_ref()->set_namespace_("default");
    to.mutable_target_ref()->set_name(std::string("pod-") + from.ip);
  }
  return out;
}

const Source kHost{Source::kHost, "host", {}};
const Source kPod{Source::kPod, "pod default/client", {Ip("10.244.0.9")}};
const Source kOutside{Source::kAddress, "address 203.0.113.5", {Ip("203.0.113.5")}};

class TraceServiceTest : public ::testing::Test {
 protected:
  // The way to one kind of address, and what is wrong with it.
  TracedPath Trace(const Source& source, Frontend::Kind kind = Frontend::kClusterIp) {
    ServiceView view = MakeServiceView(service_, {MakeSlice(endpoints_)}, {Ip(kNodeIp)});
    const PortView& port = view.ports[0];
    for (const Frontend& frontend : port.frontends) {
      if (frontend.kind != kind) continue;
      TracedPath out{port.name, port.protocol, FollowPacket(node_, source, frontend, 6), port.endpoints, 0,
                     {}};
      out.problems = Judge(view, port, out.path, source, kNode);
      return out;
    }
    ADD_FAILURE() << "no such address";
    return {};
  }
  static std::vector<std::string> Reasons(const TracedPath& traced) {
    std::vector<std::string> out;
    for (const Problem& problem : traced.problems) out.push_back(problem.reason);
    return out;
  }

  FakeNode node_;
  corev1::Service service_ = MakeService();
  std::vector<SliceEndpoint> endpoints_ = {{"10.244.0.2", kNode}, {"10.244.1.2", "node2"}};
};

TEST_F(TraceServiceTest, WhomIpvsSendsItTo) {
  node_.AddAddress(Ip(kVip));
  node_.Balance(kVip, 80, {"10.244.0.2", "10.244.1.2", "10.244.0.7*0"});
  node_.Put("masquerade", Key().Ip(Ip("10.244.0.9")).Ip(Ip("10.244.0.2")));
  for (const Source& source : {kPod, kHost, kOutside}) {
    TracedPath out = Trace(source);
    EXPECT_EQ(out.path.verdict, Path::kDelivered) << source.name;
    EXPECT_FALSE(out.path.misses) << source.name;
    EXPECT_THAT(Reasons(out), IsEmpty()) << source.name;
    ASSERT_EQ(out.path.backends.size(), 2u) << source.name;
    EXPECT_EQ(out.path.backends[0].via, "dev cni0");
    EXPECT_EQ(out.path.backends[0].masqueraded, source.kind == Source::kPod);
    ASSERT_FALSE(out.path.backends[1].steps.empty());
    EXPECT_EQ(out.path.backends[1].steps[0].chain, "ipvs rr");
  }
  // Input comes before it.
  node_.Base("input", nft::HookType::kFilter, nft::HookPoint::kInput, -110);
  node_.Add(Rule("input").Finish({nft::Verdict::Kind::kDrop}));
  EXPECT_EQ(Trace(kPod).path.verdict, Path::kDropped);
  EXPECT_EQ(Trace(kHost).path.verdict, Path::kDelivered);
}

TEST_F(TraceServiceTest, AVirtualServerThatOnlyDrains) {
  node_.AddAddress(Ip(kVip));
  node_.Balance(kVip, 80, {"10.244.0.2*0"});
  TracedPath out = Trace(kPod);
  EXPECT_EQ(out.path.verdict, Path::kRejected);
  EXPECT_THAT(out.path.backends, IsEmpty());
}

TEST_F(TraceServiceTest, EveryBackendAndTheWayToIt) {
  node_.Program(kVip, 80, {"10.244.0.2", "10.244.1.2"});
  node_.Put("masquerade", Key().Ip(Ip("10.244.0.9")).Ip(Ip("10.244.0.2")));
  TracedPath out = Trace(kPod);
  EXPECT_EQ(out.path.verdict, Path::kDelivered);
  ASSERT_EQ(out.path.backends.size(), 2u);
  EXPECT_EQ(out.path.backends[0].ip, Ip("10.244.0.2"));
  EXPECT_EQ(out.path.backends[0].via, "dev cni0");
  EXPECT_TRUE(out.path.backends[0].masqueraded);
  EXPECT_EQ(out.path.backends[1].via, "dev eth0 via 192.0.2.254");
  EXPECT_FALSE(out.path.backends[1].masqueraded);
  std::vector<std::string> shared;
  for (const auto& step : out.path.steps) shared.push_back(step.chain + ": " + step.what);
  EXPECT_THAT(shared, ElementsAre("ip services nat-prerouting: jump services",
                                  "ip services services: is in @vips", "ip services services: goto pick"));
  EXPECT_THAT(Reasons(out), IsEmpty());
  out = Trace(kHost);
  EXPECT_EQ(out.path.steps[0].chain, "ip services nat-output");
  EXPECT_THAT(Reasons(out), IsEmpty());
}

TEST_F(TraceServiceTest, WhatIsWrong) {
  struct Case {
    const char* what;
    std::vector<std::string> programmed;
    std::vector<SliceEndpoint> endpoints;
    std::vector<std::string> reasons;
    const char* message;
  } cases[] = {
      {"nothing in the kernel", {}, {{"10.244.0.2", kNode}}, {"NotProgrammed"}, "is kube-proxy running"},
      {"an endpoint too many",
       {"10.244.0.2", "10.244.0.3"},
       {{"10.244.0.2", kNode}},
       {"StaleEndpoint"},
       "10.244.0.3:8080"},
      {"an endpoint too few",
       {"10.244.0.2"},
       {{"10.244.0.2", kNode}, {"10.244.1.2", "node2"}},
       {"MissingEndpoint"},
       "default/pod-10.244.1.2 (10.244.1.2:8080)"},
      {"none ready",
       {},
       {{"10.244.0.2", kNode, false}},
       {"NotReady", "NotProgrammed"},
       "default/pod-10.244.0.2 (10.244.0.2:8080) not ready"},
      {"no pods", {}, {}, {"NoEndpoints", "NotProgrammed"}, "no pod matches the Service's selector"},
      {"the last ones on their way out", {"10.244.0.2"}, {{"10.244.0.2", kNode, false, true}}, {}, ""},
      {"no route", {"10.244.9.2"}, {{"10.244.9.2", "node9"}}, {"NoRoute"}, "10.244.9.2:8080"},
  };
  for (const Case& c : cases) {
    node_ = FakeNode();
    endpoints_ = c.endpoints;
    if (!c.programmed.empty()) node_.Program(kVip, 80, c.programmed);
    TracedPath out = Trace(kPod);
    EXPECT_EQ(Reasons(out), c.reasons) << c.what;
    if (!out.problems.empty()) {
      EXPECT_THAT(out.problems[0].message, HasSubstr(c.message)) << c.what;
    }
  }
}

TEST_F(TraceServiceTest, ANumberThatStandsForNoEndpoint) {
  node_.Program(kVip, 80, {"10.244.0.2", "10.244.1.2"}, 3);
  TracedPath out = Trace(kPod);
  EXPECT_EQ(out.path.verdict, Path::kDelivered);
  EXPECT_EQ(out.path.backends.size(), 2u);
  EXPECT_THAT(Reasons(out), ElementsAre("EmptySlot"));
}

TEST_F(TraceServiceTest, RefusedPackets) {
  node_.Put("reject", Key().Ip(Ip(kVip)).Port(80));
  TracedPath out = Trace(kPod);
  EXPECT_EQ(out.path.verdict, Path::kRejected);
  EXPECT_THAT(Reasons(out), ElementsAre("Refused"));
  EXPECT_THAT(out.problems[0].message, HasSubstr("by ip services forward"));
  endpoints_.clear();
  EXPECT_THAT(Reasons(Trace(kPod)), ElementsAre("NoEndpoints"));
}

TEST_F(TraceServiceTest, RefusedBehindTheChoice) {
  node_.Program(kVip, 80, {"10.244.0.2", "10.244.1.2"});
  node_.Put("drop", Key().Ip(Ip("10.244.1.2")).Port(8080));
  TracedPath out = Trace(kPod);
  EXPECT_EQ(out.path.verdict, Path::kDelivered);
  EXPECT_THAT(Reasons(out), ElementsAre("Refused"));
  EXPECT_THAT(out.problems[0].message, HasSubstr("10.244.1.2:8080 (ip services forward)"));
}

TEST_F(TraceServiceTest, PolicyLocal) {
  service_.mutable_spec()->set_external_traffic_policy("Local");
  endpoints_ = {{"10.244.1.2", "node2"}};
  node_.Put("drop", Key().Ip(Ip("198.51.100.7")).Port(80));
  TracedPath out = Trace(kOutside, Frontend::kLoadBalancer);
  EXPECT_EQ(out.path.verdict, Path::kDropped);
  EXPECT_THAT(Reasons(out), ElementsAre("NoLocalEndpoint"));
  EXPECT_EQ(out.problems[0].message, "externalTrafficPolicy is Local, and no ready endpoint is on node1");
  // Pods may use all endpoints.
  node_.Program(kVip, 80, {"10.244.1.2"});
  EXPECT_THAT(Reasons(Trace(kPod)), IsEmpty());
  service_.mutable_spec()->set_internal_traffic_policy("Local");
  EXPECT_THAT(Reasons(Trace(kPod)), ElementsAre("NoLocalEndpoint", "StaleEndpoint"));
}

TEST_F(TraceServiceTest, ForbiddenSource) {
  service_.mutable_spec()->add_load_balancer_source_ranges("198.51.100.0/24");
  node_.Put("drop", Key().Ip(Ip("198.51.100.7")).Port(80));
  EXPECT_THAT(Reasons(Trace(kOutside, Frontend::kLoadBalancer)), ElementsAre("ForbiddenSource"));
}

TEST_F(TraceServiceTest, AnAddressOfTheNodeItself) {
  TracedPath out = Trace(kPod, Frontend::kNodePort);
  EXPECT_EQ(out.path.verdict, Path::kLocal);
  EXPECT_THAT(Reasons(out), ElementsAre("NotProgrammed"));
  // A cluster IP is made the node's own by who serves it: the cluster's DNS.
  node_.AddAddress(Ip(kVip));
  out = Trace(kPod);
  EXPECT_EQ(out.path.verdict, Path::kLocal);
  EXPECT_THAT(out.problems, IsEmpty());
}

// The address of the cluster's DNS, as a pod and the node itself see it: through every hook of every table.
TEST_F(TraceServiceTest, AnAddressServedHereThroughAllHooks) {
  node_.AddAddress(Ip(kVip));
  for (auto [name, point] :
       {std::pair("input", nft::HookPoint::kInput), std::pair("output", nft::HookPoint::kOutput)}) {
    node_.Base(name, nft::HookType::kFilter, point, 0);
    node_.Add(Rule(name).Finish(nft::Jump("nobody")));
  }
  node_.AddNotUnderstood("input", "[limit rate 5/second]; drop");
  for (const Source& source : {kHost, kPod}) {
    TracedPath out = Trace(source);
    EXPECT_EQ(out.path.verdict, Path::kLocal) << source.name;
    EXPECT_THAT(out.problems, IsEmpty());
    EXPECT_THAT(out.path.backends, IsEmpty());
    EXPECT_THAT(out.path.not_understood, ElementsAre("ip services input: [limit rate 5/second]; drop"));
  }
  // Refused on its way in.
  node_.Add(Rule("input").Finish({nft::Verdict::Kind::kDrop}));
  EXPECT_EQ(Trace(kPod).path.verdict, Path::kDropped);
}

// Other programs' rules may draw numbers too: what becomes of some of the packets is told.
TEST_F(TraceServiceTest, RulesBehindTheChoiceThatPartWays) {
  node_.Program(kVip, 80, {"10.244.0.2", "10.244.1.2"});
  node_.Add(Rule("postrouting").Random(0, 4).Equal(0, Key().Mark(0).bytes()).Masquerade());
  TracedPath out = Trace(kPod);
  EXPECT_EQ(out.path.verdict, Path::kDelivered);
  ASSERT_EQ(out.path.backends.size(), 2u);
  EXPECT_TRUE(out.path.backends[0].masqueraded);
  EXPECT_THAT(Reasons(out), IsEmpty());
  node_.Add(Rule("forward").Random(0, 4).Equal(0, Key().Mark(3).bytes()).Finish({nft::Verdict::Kind::kDrop}));
  out = Trace(kPod);
  EXPECT_EQ(out.path.verdict, Path::kDelivered);
  EXPECT_THAT(Reasons(out), ElementsAre("Refused"));
  EXPECT_THAT(out.problems[0].message, HasSubstr("10.244.0.2:8080 (ip services forward)"));
}

TEST_F(TraceServiceTest, AnotherFamily) {
  const Source source{Source::kPod, "pod default/six", {Ip("fd00::9")}};
  TracedPath out = Trace(source);
  EXPECT_EQ(out.path.verdict, Path::kNoWay);
  EXPECT_THAT(Reasons(out), ElementsAre("NoWay"));
}

TEST_F(TraceServiceTest, HintsMayLeaveEndpointsOut) {
  node_.Program(kVip, 80, {"10.244.0.2"});
  ServiceView view = MakeServiceView(service_, {MakeSlice(endpoints_)}, {});
  for (Endpoint& endpoint : view.ports[0].endpoints) endpoint.hinted = true;
  Path path = FollowPacket(node_, kPod, view.ports[0].frontends[0], 6);
  EXPECT_THAT(Judge(view, view.ports[0], path, kPod, kNode), IsEmpty());
}

TEST_F(TraceServiceTest, AClientIsKeptToOneEndpoint) {
  node_.Program(kVip, 80, {"10.244.0.2"});
  EXPECT_THAT(Reasons(Trace(kPod)), ElementsAre("MissingEndpoint"));
  service_.mutable_spec()->set_session_affinity("ClientIP");
  EXPECT_THAT(Reasons(Trace(kPod)), IsEmpty());
}

TEST_F(TraceServiceTest, ConnectionsToWhatIsGone) {
  ServiceView view = MakeServiceView(service_, {MakeSlice(endpoints_)}, {});
  netlink::Flow good{.source = Ip("10.244.0.9"), .replier = Ip("10.244.0.2"), .replier_port = 8080};
  netlink::Flow bad = good;
  bad.replier = Ip("10.244.0.3");
  EXPECT_THAT(JudgeFlows(view.ports[0], {good}), IsEmpty());
  auto problems = JudgeFlows(view.ports[0], {good, bad});
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_THAT(problems[0].message, HasSubstr("1 tracked connection(s)"));
}

TEST_F(TraceServiceTest, Printed) {
  node_.Program(kVip, 80, {"10.244.0.2"});
  TraceReport report{"default/web", "ClusterIP", kPod.name, kNode, {}, {Trace(kPod)}};
  EXPECT_TRUE(report.HasProblems());
  EXPECT_THAT(
      ToTable(report),
      AllOf(HasSubstr("ClusterIP Service default/web, from pod default/client, on node node1\n"),
            HasSubstr("clusterIP 10.96.0.7:80/TCP (http): Delivered\n"),
            HasSubstr("BACKEND           POD                      NODE    READY   MASQUERADED   VIA\n"),
            HasSubstr("PROBLEM MissingEndpoint: ")));
  boost::json::value document = ToDocument(report);
  EXPECT_EQ(document.at_pointer("/paths/0/backends/0/pod").as_string(), "default/pod-10.244.0.2");
  EXPECT_EQ(document.at_pointer("/paths/0/problems/0/reason").as_string(), "MissingEndpoint");
}

}  // namespace
}  // namespace keelson::ctl
