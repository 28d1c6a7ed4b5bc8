#include "ctl/trace/testing/fake_node.h"

namespace keelson::ctl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

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

// Other programs' rules may draw numbers too: the trace reports what happens to a part of the packets.
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
  TraceReport report{"default/web", "ClusterIP", kPod.name, kNode, {}, {}, {Trace(kPod)}};
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
