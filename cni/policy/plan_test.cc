#include "cni/policy/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cni/policy/ports.h"
#include "cni/policy/testing/traced.h"
#include "lib/dataplane/policy_sets.h"

namespace keelson::cni::policy {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

IpAddress Ip(const char* text) { return *IpAddress::Parse(text); }

const Node kNode = {"n1", {*IpPrefix::Parse("10.244.1.0/24"), *IpPrefix::Parse("fd44:1::/64")}};

class PlanTest : public ::testing::Test {
 protected:
  PlanTest() { cluster_.namespaces["x"] = {}; }

  Pod& AddPod(const std::string& name, const char* address, const char* app, const char* node = "n1") {
    Pod pod{.ns = "x", .name = name, .uid = "uid-" + name, .node = node, .labels = {{"app", app}}};
    pod.addresses = {Ip(address)};
    if (pod.node == kNode.name) attachments_[Ip(address)] = {.uid = pod.uid, .epoch = 7};
    return cluster_.pods["x/" + name] = pod;
  }
  // Isolates `app` for ingress; only pods of `from` may come in.
  Policy& Allow(const char* app, const char* from) {
    auto is = [](const char* value) {
      return Selector{{{.key = "app", .op = Selector::Op::kIn, .values = {value}}}};
    };
    Policy policy{
        .ns = "x", .name = std::string(app) + "-" + from, .pods = is(app), .isolates_ingress = true};
    policy.ingress = {{.peers = {{.pods = is(from)}}, .ports = {}}};
    return cluster_.policies["x/" + policy.name] = policy;
  }
  Plan Make() { return MakePlan(cluster_, kNode, attachments_); }
  bool Passes(const char* source, const char* destination, uint16_t port = 80) {
    return TracedPlan(Make()).Passes({Ip(source), Ip(destination), 6, port});
  }

  Cluster cluster_;
  Attachments attachments_;
};

TEST_F(PlanTest, AddressesOfThisNodeWithoutAPodAreDropped) {
  AddPod("a", "10.244.1.2", "a");
  EXPECT_TRUE(Passes("10.244.2.2", "10.244.1.2"));
  EXPECT_FALSE(Passes("10.244.2.2", "10.244.1.3"));
  EXPECT_FALSE(Passes("10.244.1.3", "10.244.2.2"));
  EXPECT_TRUE(Passes("192.0.2.1", "198.51.100.1"));
}

TEST_F(PlanTest, AnAttachmentWithoutItsPodIsNotReady) {
  AddPod("a", "10.244.1.2", "a");
  cluster_.pods["x/a"].uid = "another";
  Plan plan = Make();
  EXPECT_THAT(plan.ready, IsEmpty());
  EXPECT_THAT(plan.rules.sets["attached4"].elements, SizeIs(1)) << "it belongs to the plugin";
  EXPECT_FALSE(Passes("10.244.2.2", "10.244.1.2"));
}

TEST_F(PlanTest, AReusedAddressHasOnlyWhatItsNewPodMay) {
  AddPod("old", "10.244.1.2", "a");
  AddPod("client", "10.244.2.9", "client", "n2");
  Allow("a", "client");
  Allow("b", "nobody");
  EXPECT_TRUE(Passes("10.244.2.9", "10.244.1.2"));
  // The API still has the old pod with its address; the new one is attached and reports none yet.
  AddPod("new", "10.244.1.2", "b").addresses.clear();
  EXPECT_FALSE(Passes("10.244.2.9", "10.244.1.2"));
  // As a peer too the address is the new pod's.
  AddPod("server", "10.244.1.5", "server");
  Allow("server", "a");
  EXPECT_FALSE(Passes("10.244.1.2", "10.244.1.5"));
  Allow("server", "b");
  EXPECT_TRUE(Passes("10.244.1.2", "10.244.1.5"));
}

TEST_F(PlanTest, OfTwoPodsElsewhereWithOneAddressTheYoungestHasIt) {
  AddPod("server", "10.244.1.5", "server");
  Allow("server", "a");
  AddPod("old", "10.244.2.2", "a", "n2").created = 1;
  EXPECT_TRUE(Passes("10.244.2.2", "10.244.1.5"));
  AddPod("new", "10.244.2.2", "b", "n2").created = 2;
  EXPECT_FALSE(Passes("10.244.2.2", "10.244.1.5"));
}

TEST_F(PlanTest, StaticPodsAreKnownByTheUidOfTheRuntime) {
  AddPod("mirror", "10.244.1.2", "a").static_uid = "from-a-file";
  attachments_[Ip("10.244.1.2")].uid = "from-a-file";
  EXPECT_THAT(Make().ready, SizeIs(1));
  // A pod cannot take the attachment of another one by an annotation.
  AddPod("victim", "10.244.1.3", "b");
  AddPod("thief", "10.244.1.4", "a").static_uid = "uid-victim";
  Allow("b", "nobody");
  EXPECT_FALSE(Passes("10.244.1.4", "10.244.1.3"));
}

TEST_F(PlanTest, APodReachesItself) {
  AddPod("a", "10.244.1.2", "a");
  Allow("a", "nobody").isolates_egress = true;
  EXPECT_TRUE(Passes("10.244.1.2", "10.244.1.2"));
  EXPECT_FALSE(Passes("10.244.1.2", "192.0.2.1"));
}

// ClusterNetworkPolicies count outside of the pod: what it sends itself by a Service comes by there.
TEST_F(PlanTest, ClusterPoliciesDecideWhatAPodSendsItselfByAService) {
  AddPod("a", "10.244.1.2", "a");
  ClusterPolicy policy{.name = "p", .namespaces = {}, .pods = {}};
  policy.ingress = {{.peers = {{.pods = Selector(), .namespaces = Selector()}}}};
  for (auto tier : {ClusterPolicy::Tier::kAdmin, ClusterPolicy::Tier::kBaseline}) {
    policy.tier = tier;
    cluster_.cluster_policies["p"] = policy;
    EXPECT_FALSE(Passes("10.244.1.2", "10.244.1.2"));
  }
  Allow("a", "nobody");
  EXPECT_TRUE(Passes("10.244.1.2", "10.244.1.2")) << "a NetworkPolicy stands before the tier Baseline";
}

TEST_F(PlanTest, NodesArePeersByTheAddressesOfTheirObjects) {
  AddPod("a", "10.244.1.2", "a");
  cluster_.nodes["n1"] = {{{"zone", "z1"}}, {Ip("192.0.2.1")}};
  cluster_.nodes["n2"] = {{{"zone", "z2"}}, {Ip("192.0.2.2"), Ip("198.51.100.2")}};
  auto zone = [](const char* name) { return Peer{.nodes = Selector{{{.key = "zone", .values = {name}}}}}; };
  ClusterPolicy& policy = cluster_.cluster_policies["p"] = {.name = "p", .namespaces = {}, .pods = {}};
  policy.egress = {{.action = TierRule::Action::kAccept,
                    .peers = {zone("z2")},
                    .ports = {{.protocol = 6, .first = 80, .last = 80}}},
                   {.peers = {{.nodes = Selector()}}}};
  EXPECT_TRUE(Passes("10.244.1.2", "192.0.2.2"));
  EXPECT_TRUE(Passes("10.244.1.2", "198.51.100.2"));
  EXPECT_FALSE(Passes("10.244.1.2", "192.0.2.2", 81));
  EXPECT_TRUE(Passes("10.244.1.2", "203.0.113.1"));
  EXPECT_TRUE(Passes("192.0.2.2", "10.244.1.2")) << "what a node sends";
  auto reaches = [&](const char* source, const char* destination) {
    return TracedPlan(Make()).ReachesNode({Ip(source), Ip(destination), 6, 80});
  };
  EXPECT_FALSE(reaches("10.244.1.2", "192.0.2.1")) << "the pod's own node";
  EXPECT_TRUE(reaches("10.244.1.2", "10.244.1.1")) << "no address that the Node object has";
  EXPECT_TRUE(reaches("192.0.2.2", "192.0.2.1"));
  policy.egress.erase(policy.egress.begin() + 1);
  EXPECT_TRUE(reaches("10.244.1.2", "192.0.2.1"));
}

TEST_F(PlanTest, PodsWithEqualRulesShareAChainAndNamedPortsPartThem) {
  AddPod("a1", "10.244.1.2", "a").ports = {{"web", 6, 80}};
  AddPod("a2", "10.244.1.3", "a").ports = {{"web", 6, 80}};
  AddPod("a3", "10.244.1.4", "a").ports = {{"web", 6, 8080}};
  AddPod("a4", "10.244.1.5", "a");
  AddPod("client", "10.244.2.9", "client", "n2");
  Allow("a", "client").ingress[0].ports = {{.protocol = 6, .name = "web"}};
  Plan plan = Make();
  auto chain = [&](const char* address) {
    return plan.rules.sets["ingress4"].elements.at(nft::Key().Ip(Ip(address)).bytes()).verdict->chain;
  };
  EXPECT_EQ(chain("10.244.1.2"), chain("10.244.1.3"));
  EXPECT_NE(chain("10.244.1.2"), chain("10.244.1.4"));
  EXPECT_TRUE(Passes("10.244.2.9", "10.244.1.4", 8080));
  EXPECT_FALSE(Passes("10.244.2.9", "10.244.1.4", 80));
  EXPECT_FALSE(Passes("10.244.2.9", "10.244.1.5", 80)) << "it has no port of this name";
  EXPECT_EQ(plan.isolated, 4u);
}

TEST_F(PlanTest, TheNodeItselfIsNeverDroppedAndIpvsTrafficIsSeen) {
  AddPod("a", "10.244.1.2", "a");
  Allow("a", "nobody");
  TracedPlan plan(Make());
  Packet packet{Ip("10.244.2.2"), Ip("10.244.1.2"), 6, 80};
  EXPECT_EQ(plan.At(nft::HookPoint::kOutput, packet, 2).end, nft::TraceOutcome::kGoesOn) << "of the node";
  EXPECT_EQ(plan.At(nft::HookPoint::kOutput, packet, 4).end, nft::TraceOutcome::kGoesOn)
      << "of the node, from an anycast address";
  EXPECT_EQ(plan.At(nft::HookPoint::kOutput, packet, 1).end, nft::TraceOutcome::kDropped) << "of a client";
}

TEST_F(PlanTest, AttachmentsSurviveInTheTable) {
  AddPod("a", "10.244.1.2", "a");
  attachments_[Ip("fd44:1::2")] = {.uid = "uid-a", .epoch = 0xdeadbeef};
  EXPECT_EQ(AttachmentsOf(Make().rules), attachments_);
}

TEST_F(PlanTest, PodsFromBeforeAreFoundByWhatTheApiSays) {
  Pod& old = AddPod("old", "10.244.1.2", "a");
  AddPod("elsewhere", "10.244.2.2", "a", "n2");
  AddPod("host", "10.244.1.9", "a").host_network = true;
  attachments_.clear();
  using Found = std::map<IpAddress, std::string>;
  auto find = [&] { return Unattached(cluster_, "n1", kNode.pod_cidrs, attachments_); };
  EXPECT_EQ(find(), (Found{{Ip("10.244.1.2"), "uid-old"}}));
  old.terminating = true;
  EXPECT_EQ(find(), Found());
  old.terminating = false;
  attachments_[Ip("10.244.1.77")] = {.uid = "uid-old", .epoch = 1};
  EXPECT_EQ(find(), Found()) << "its new sandbox has another address";
}

TEST(PortRules, ElementsOfPluginsStayWhileTheirPortsExist) {
  nft::Ruleset found = PortRules(std::string("\x02\0\0\0\0\1", 6), {"veth1", "veth2"}, std::nullopt);
  EXPECT_THAT(found.sets["ports"].elements, SizeIs(2));
  std::string source = nft::Key().Ifname("veth1").Ip(Ip("10.244.1.2")).bytes();
  std::string port = nft::Key().Ifname("veth1").bytes();
  found.sets["sources4"].elements[source] = {.key = source, .comment = "keelson/1/eth0"};
  found.sets["ports"].elements[port].comment = "keelson/1/eth0";
  nft::Ruleset kept = PortRules(std::nullopt, {"veth1", "veth3"}, found);
  EXPECT_THAT(kept.sets["sources4"].elements, SizeIs(1));
  EXPECT_EQ(kept.sets["ports"].elements.at(port).comment, "keelson/1/eth0");
  EXPECT_THAT(kept.sets["ports"].elements, SizeIs(2));
  // Without a bridge no frame of a pod goes anywhere.
  EXPECT_EQ(kept.chains["prerouting"].rules.size() + 2, found.chains["prerouting"].rules.size());
  EXPECT_THAT(PortRules(std::nullopt, {}, found).sets["sources4"].elements, IsEmpty());
}

}  // namespace
}  // namespace keelson::cni::policy
