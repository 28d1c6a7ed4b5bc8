#include "cni/agent/policy/cluster_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "cni/agent/policy/cluster_policy_watch.h"
#include "lib/client/testing/fake_api.h"

namespace keelson::cni::agent {
namespace {

using policy::ClusterPolicy;
using policy::TierRule;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::string ListOf(const std::string& spec, const std::string& status = "{}") {
  return R"({"metadata":{"resourceVersion":"7"},"items":[{"metadata":{"name":"p","generation":3},"spec":)" +
         spec + R"(,"status":)" + status + "}]}";
}
ParsedClusterPolicy Parse(const std::string& spec, const std::string& status = "{}",
                          ClusterPolicyKind kind = ClusterPolicyKind::kClusterNetworkPolicy) {
  Result<ClusterPolicyList> list = ParseClusterPolicies(ListOf(spec, status), kind);
  EXPECT_TRUE(list && list->policies.size() == 1 && list->resource_version == "7");
  return list->policies.at(0);
}

TEST(ClusterPolicy, EveryFieldThatIsEnforced) {
  ParsedClusterPolicy parsed = Parse(R"({
    "tier": "Baseline", "priority": 12,
    "subject": {"pods": {"namespaceSelector": {"matchLabels": {"team": "a"}}, "podSelector": {}}},
    "ingress": [{"name": "from x: all", "action": "Pass", "from": [{"namespaces": {"matchLabels": {"n": "x"}}}]}],
    "egress": [{"action": "Accept",
                "to": [{"networks": ["10.0.0.0/8", "fd00::/8"]},
                       {"pods": {"namespaceSelector": {}, "podSelector": {"matchExpressions": [
                          {"key": "app", "operator": "In", "values": ["b", "c"]}]}}}],
                "protocols": [{"tcp": {"destinationPort": {"number": 443}}},
                              {"udp": {"destinationPort": {"range": {"start": 50, "end": 60}}}},
                              {"sctp": {"destinationPort": {"number": 9}}}]},
               {"action": "Deny", "to": [{"namespaces": {}}], "protocols": [{"destinationNamedPort": "web"}]}]})");
  const ClusterPolicy& policy = parsed.policy;
  EXPECT_THAT(policy.problems, IsEmpty());
  EXPECT_EQ(policy.tier, ClusterPolicy::Tier::kBaseline);
  EXPECT_EQ(policy.priority, 12);
  EXPECT_TRUE(policy.namespaces.Matches({{"team", "a"}}));
  EXPECT_FALSE(policy.namespaces.Matches({}));
  ASSERT_THAT(policy.ingress, SizeIs(1));
  EXPECT_EQ(policy.ingress[0].action, TierRule::Action::kPass);
  EXPECT_EQ(policy.ingress[0].name, "from x_ all");
  ASSERT_THAT(policy.egress, SizeIs(2));
  EXPECT_THAT(policy.egress[0].peers, SizeIs(3));
  EXPECT_THAT(policy.egress[0].ports, ElementsAre(policy::Port{.protocol = 6, .first = 443, .last = 443},
                                                  policy::Port{.protocol = 17, .first = 50, .last = 60},
                                                  policy::Port{.protocol = 132, .first = 9, .last = 9}));
  EXPECT_THAT(policy.egress[1].ports, SizeIs(3));
}

TEST(ClusterPolicy, WhatIsNotSupportedFailsClosed) {
  const std::string head = R"({"tier":"Admin","priority":1,"subject":{"namespaces":{}},"egress":[)";
  struct Case {
    const char* rule;
    bool denies_all;
    const char* why;
  } cases[] = {
      {R"({"action":"Deny","to":[{"domainNames":["a.example"]}]})", true, "does not accept"},
      {R"({"action":"Pass","to":[{"namespaces":{}},{"domainNames":["a.example"]}]})", true,
       "does not accept"},
      {R"({"action":"Accept","to":[{"domainNames":["*.example","a.example"]}]})", false, "domain name"},
      {R"({"action":"Accept","to":[{"domainNames":[7]}]})", false, "domain name"},
      {R"({"action":"Accept","to":[{"domainNames":[]}]})", false, "no peers"},
      {R"({"action":"Accept","to":[{"domainNames":["a.example"]}],"protocols":[{"destinationNamedPort":"web"}]})",
       false, "named port"},
      {R"({"action":"Accept","to":[{"workloads":{}}]})", false, "workloads"},
      {R"({"action":"Deny","to":[{"workloads":{}}]})", true, "workloads"},
      {R"({"action":"Pass","to":[{"namespaces":{}},{"workloads":{}}]})", true, "workloads"},
      {R"({"action":"Deny","to":[{"nodes":{}}],"protocols":[{"destinationNamedPort":"web"}]})", true,
       "named port"},
      {R"({"action":"Accept","to":[{"nodes":{"matchFields":{}}}]})", false, "unknown field"},
      {R"({"action":"Accept","to":[{}]})", false, "exactly one"},
      {R"({"action":"Deny","to":[]})", true, "no peers"},
      {R"({"action":"Allow","to":[{"namespaces":{}}]})", true, "Allow"},
      {R"({"action":"Accept","to":[{"networks":["10.0.0.0/33"]}]})", false, "CIDR"},
      {R"({"action":"Accept","to":[{"namespaces":{}}],"protocols":[{"icmp":{}}]})", false, "protocol"},
      {R"({"action":"Accept","to":[{"namespaces":{}}],"protocols":[]})", false, "protocols"},
      {R"({"action":"Accept","to":[{"namespaces":{}}],"protocols":[{"tcp":{"destinationPort":{"number":0}}}]})",
       false, "invalid port"},
      {R"({"action":"Accept","to":[{"namespaces":{"matchExpressions":[{"key":"a","operator":"Gt"}]}}]})",
       false, "operator"},
      {R"({"action":"Accept","to":[{"namespaces":{"namespaceSelector":{"matchLabels":{"a":"b"}}}}]})", false,
       "namespaceSelector"},
      {R"({"action":"Accept","to":[{"pods":{"podSelector":{},"namespaces":{}}}]})", false, "unknown field"},
  };
  for (const Case& c : cases) {
    ParsedClusterPolicy parsed = Parse(head + c.rule + "]}");
    ASSERT_THAT(parsed.policy.problems, SizeIs(1)) << c.rule;
    EXPECT_THAT(parsed.policy.problems[0], HasSubstr(c.why));
    ASSERT_THAT(parsed.policy.egress, SizeIs(1));
    const TierRule& rule = parsed.policy.egress[0];
    if (c.denies_all) {
      EXPECT_EQ(rule.action, TierRule::Action::kDeny) << c.rule;
      EXPECT_TRUE(rule.peers.empty() && rule.ports.empty()) << c.rule;
    } else {
      EXPECT_EQ(rule.action, TierRule::Action::kAccept) << c.rule;
      ASSERT_THAT(rule.peers, SizeIs(1)) << c.rule;
      EXPECT_FALSE(rule.peers[0].pods->Matches({{"", ""}})) << c.rule;
    }
    EXPECT_TRUE(NeedsStatus(parsed));
    EXPECT_THAT(StatusPatch(parsed, "2026-01-01T00:00:00Z"), HasSubstr(R"("status":"False")"));
  }
}

TEST(ClusterPolicy, OfAnUnknownSubjectOrTierOnlyDenialsCount) {
  const std::string rules =
      R"("ingress":[{"action":"Accept","from":[{"namespaces":{}}]},{"action":"Deny","from":[{"namespaces":{}}]}]})";
  for (const char* head : {R"({"tier":"Admin","subject":{"workloads":{}},)",
                           R"({"tier":"Later","subject":{"namespaces":{}},)"}) {
    ParsedClusterPolicy parsed = Parse(head + rules);
    EXPECT_THAT(parsed.policy.problems, SizeIs(1));
    ASSERT_THAT(parsed.policy.ingress, SizeIs(1));
    EXPECT_EQ(parsed.policy.ingress[0].action, TierRule::Action::kDeny);
  }
}

TEST(ClusterPolicy, AStatusThatSaysItIsLeftAlone) {
  const char spec[] = R"({"tier":"Admin","priority":1,"subject":{"namespaces":{}}})";
  EXPECT_TRUE(NeedsStatus(Parse(spec)));
  EXPECT_FALSE(NeedsStatus(Parse(spec, R"({"conditions":[{"type":"Enforced","status":"True",
                                           "message":"every rule is enforced as written"}]})")));
  EXPECT_FALSE(ParseClusterPolicies("[]", ClusterPolicyKind::kClusterNetworkPolicy));
  EXPECT_FALSE(ParseClusterPolicies("{", ClusterPolicyKind::kClusterNetworkPolicy));
}

TEST(ClusterPolicy, DomainNamesOfRulesThatAccept) {
  ParsedClusterPolicy parsed = Parse(R"({"tier":"Admin","priority":1,"subject":{"namespaces":{}},"egress":[
      {"action":"Accept","to":[{"domainNames":["WWW.Example.com.","*.example.org"]},{"networks":["10.0.0.0/8"]}]}]})");
  EXPECT_THAT(parsed.policy.problems, IsEmpty());
  ASSERT_THAT(parsed.policy.egress, SizeIs(1));
  const std::vector<policy::Peer>& peers = parsed.policy.egress[0].peers;
  ASSERT_THAT(peers, SizeIs(3));
  EXPECT_EQ(peers[0].domain, "www.example.com");
  EXPECT_EQ(peers[1].domain, "*.example.org");
  EXPECT_TRUE(peers[2].block.has_value());
}

TEST(ClusterPolicy, NodesArePeersOfEgressRules) {
  const std::string head = R"({"tier":"Admin","priority":1,"subject":{"namespaces":{}},)";
  const ParsedClusterPolicy parsed =
      Parse(head +
            R"("egress":[{"action":"Deny","to":[{"nodes":{"matchLabels":{"kubernetes.io/os":"linux"}}}]}]})");
  EXPECT_THAT(parsed.policy.problems, IsEmpty());
  ASSERT_THAT(parsed.policy.egress, SizeIs(1));
  ASSERT_THAT(parsed.policy.egress[0].peers, SizeIs(1));
  ASSERT_TRUE(parsed.policy.egress[0].peers[0].nodes);
  EXPECT_TRUE(parsed.policy.egress[0].peers[0].nodes->Matches({{"kubernetes.io/os", "linux"}}));
  EXPECT_FALSE(parsed.policy.egress[0].peers[0].nodes->Matches({}));
  EXPECT_THAT(Parse(head + R"("ingress":[{"action":"Deny","from":[{"nodes":{}}]}]})").policy.problems,
              SizeIs(1));
}

TEST(ClusterPolicy, AdminNetworkPoliciesAreOfTierAdmin) {
  const std::string spec = R"({"priority": 40, "subject": {"pods": {
        "namespaceSelector": {"matchLabels": {"team": "a"}}, "podSelector": {"matchLabels": {"app": "b"}}}},
      "ingress": [{"name": "all", "action": "Allow", "from": [{"namespaces": {}}]},
                  {"action": "Pass", "from": [{"pods": {"namespaceSelector": {}, "podSelector": {}}}]}],
      "egress": [{"action": "Deny", "to": [{"networks": ["10.0.0.0/8"]}],
                  "ports": [{"portNumber": {"protocol": "TCP", "port": 443}},
                            {"portRange": {"protocol": "UDP", "start": 50, "end": 60}},
                            {"namedPort": "web"}]},
                 {"action": "Allow", "to": [{"domainNames": ["*.example.com"]}]}]})";
  ParsedClusterPolicy parsed = Parse(spec, "{}", ClusterPolicyKind::kAdminNetworkPolicy);
  const ClusterPolicy& policy = parsed.policy;
  EXPECT_THAT(policy.problems, IsEmpty());
  EXPECT_EQ(policy.name, "AdminNetworkPolicy/p");
  EXPECT_EQ(policy.Title(), "AdminNetworkPolicy/p");
  EXPECT_EQ(parsed.object, "p");
  EXPECT_EQ(policy.tier, ClusterPolicy::Tier::kAdmin);
  EXPECT_EQ(policy.priority, 40);
  EXPECT_FALSE(policy.namespaces.Matches({}));
  EXPECT_FALSE(policy.pods.Matches({}));
  ASSERT_THAT(policy.ingress, SizeIs(2));
  EXPECT_EQ(policy.ingress[0].action, TierRule::Action::kAccept);
  EXPECT_EQ(policy.ingress[1].action, TierRule::Action::kPass);
  ASSERT_THAT(policy.egress, SizeIs(2));
  EXPECT_THAT(policy.egress[0].ports, ElementsAre(policy::Port{.protocol = 6, .first = 443, .last = 443},
                                                  policy::Port{.protocol = 17, .first = 50, .last = 60},
                                                  policy::Port{.protocol = 6, .name = "web"},
                                                  policy::Port{.protocol = 17, .name = "web"},
                                                  policy::Port{.protocol = 132, .name = "web"}));
  EXPECT_EQ(policy.egress[1].peers.at(0).domain, "*.example.com");
}

TEST(ClusterPolicy, BaselineAdminNetworkPoliciesAreOfTierBaseline) {
  const auto kind = ClusterPolicyKind::kBaselineAdminNetworkPolicy;
  ParsedClusterPolicy parsed = Parse(R"({"subject": {"namespaces": {}}, "ingress": [
      {"action": "Deny", "from": [{"namespaces": {}}]}, {"action": "Allow", "from": [{"namespaces": {}}]}]})",
                                     "{}", kind);
  EXPECT_THAT(parsed.policy.problems, IsEmpty());
  EXPECT_EQ(parsed.policy.name, "BaselineAdminNetworkPolicy/p");
  EXPECT_EQ(parsed.policy.tier, ClusterPolicy::Tier::kBaseline);
  EXPECT_GT(parsed.policy.priority, 1000) << "behind all ClusterNetworkPolicies of the tier";
  // What the kinds of v1alpha1 do not have, or wrote otherwise in the first releases, fails closed.
  for (
      const char* rule :
      {R"({"action":"Pass","from":[{"namespaces":{}}]})", R"({"action":"Accept","from":[{"namespaces":{}}]})",
       R"({"action":"Deny","from":[{"namespaces":{"sameLabels":["a"]}}]})",
       R"({"action":"Deny","from":[{"namespaces":{}}],"ports":[{"portNumber":{"protocol":"ICMP","port":1}}]})",
       R"({"action":"Deny","from":[{"namespaces":{}}],"ports":[]})"}) {
    parsed = Parse(std::string(R"({"subject":{"namespaces":{}},"ingress":[)") + rule + "]}", "{}", kind);
    EXPECT_THAT(parsed.policy.problems, SizeIs(1)) << rule;
    ASSERT_THAT(parsed.policy.ingress, SizeIs(1));
    EXPECT_EQ(parsed.policy.ingress[0].action, TierRule::Action::kDeny) << rule;
    EXPECT_THAT(parsed.policy.ingress[0].peers, IsEmpty()) << rule;
  }
}

// An API server that has the resource, or not.
TEST(ClusterPolicyWatch, StartsWithTheResourceAndReportsStatus) {
  client::FakeApi api;
  std::atomic<bool> exists = false;
  Mutex mutex;
  CondVar told;
  int patches = 0;
  std::string status = "{}";
  api.SetInterceptor([&](const client::ApiRequest& request) -> std::optional<Result<client::ApiResponse>> {
    if (request.target.find("/apis/policy.networking.k8s.io") != 0) return std::nullopt;
    client::ApiResponse out{.status = 404, .content_type = "application/json", .body = "{}"};
    if (!exists) return out;
    MutexLock lock(mutex);
    out.status = 200;
    if (request.method == "PATCH") {
      ++patches;
      told.notify_all();
      status =
          R"({"conditions":[{"type":"Enforced","status":"True","message":"every rule is enforced as written"}]})";
    } else if (request.target.find("clusternetworkpolicies") == std::string::npos) {
      out.body = R"({"resources":[{"name":"clusternetworkpolicies"}]})";
    } else {
      out.body = ListOf(R"({"tier":"Admin","priority":1,"subject":{"namespaces":{}}})", status);
    }
    return out;
  });
  std::vector<size_t> found;
  // The fake serves no such watch: each try ends at once, and lists again.
  ClusterPolicyWatch watch(std::shared_ptr<client::Transport>(&api, [](client::Transport*) {}),
                           ClusterNetworkPolicies(std::chrono::milliseconds(10)), [&](auto policies) {
                             MutexLock lock(mutex);
                             found.push_back(policies.size());
                             told.notify_all();
                           });
  std::jthread thread([&](std::stop_token stop) { (void)watch.Run(stop); });
  auto await = [&](size_t size) {
    MutexLock lock(mutex);
    while (found.empty() || found.back() != size) told.wait(mutex);
  };
  await(0);
  exists = true;
  await(1);
  {
    MutexLock lock(mutex);
    while (patches == 0) told.wait(mutex);
  }
  exists = false;
  await(0);
}

// The newest version that the API server has is followed: older ones show the same objects.
TEST(ClusterPolicyWatch, TakesTheNewestVersionThatThereIs) {
  struct Case {
    const char* served;
    ClusterPolicyResource resource;
    const char* path;
  } cases[] = {
      {"v1alpha2 v1beta1", ClusterNetworkPolicies(), "v1beta1/clusternetworkpolicies"},
      {"v1alpha2", ClusterNetworkPolicies(), "v1alpha2/clusternetworkpolicies"},
      {"v1alpha1", AdminNetworkPolicies(), "v1alpha1/adminnetworkpolicies"},
      {"v1alpha1", BaselineAdminNetworkPolicies(), "v1alpha1/baselineadminnetworkpolicies"},
  };
  for (const Case& c : cases) {
    client::FakeApi api;
    Mutex mutex;
    CondVar told;
    std::string listed;
    api.SetInterceptor([&](const client::ApiRequest& request) -> std::optional<Result<client::ApiResponse>> {
      const std::string group = "/apis/policy.networking.k8s.io/";
      if (!request.target.starts_with(group)) return std::nullopt;
      const std::string rest = request.target.substr(group.size());
      client::ApiResponse out{.status = 404, .content_type = "application/json", .body = "{}"};
      const size_t slash = rest.find('/');
      if (std::string_view(c.served).find(rest.substr(0, slash)) == std::string_view::npos) return out;
      out.status = 200;
      out.body =
          R"({"resources":[{"name":"clusternetworkpolicies"},{"name":"adminnetworkpolicies"},{"name":"baselineadminnetworkpolicies"}]})";
      if (slash == std::string::npos) return out;
      MutexLock lock(mutex);
      listed = rest;
      out.body = R"({"metadata":{"resourceVersion":"1"},"items":[]})";
      told.notify_all();
      return out;
    });
    ClusterPolicyWatch watch(std::shared_ptr<client::Transport>(&api, [](client::Transport*) {}), c.resource,
                             [](const auto&) {});
    std::jthread thread([&](std::stop_token stop) { (void)watch.Run(stop); });
    MutexLock lock(mutex);
    while (listed.empty()) told.wait(mutex);
    EXPECT_EQ(listed.substr(0, listed.find('?')), c.path);
  }
}

}  // namespace
}  // namespace keelson::cni::agent
