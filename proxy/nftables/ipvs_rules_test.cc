// The table that stands beside the virtual servers: nftables::Plan with Options::ipvs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lib/nft/text.h"
#include "proxy/nftables/plan.h"

namespace keelson::proxy::nftables {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

IpAddress Ip(const std::string& text) { return *IpAddress::Parse(text); }

class IpvsRulesTest : public ::testing::Test {
 protected:
  IpvsRulesTest() {
    port_.service = {.name = "default/web:", .cluster_ip = Ip("10.96.0.1"), .port = 80, .node_port = 30080};
    port_.service.external_ips = {Ip("192.0.2.1")};
    port_.cluster = {{Ip("10.1.0.1"), 8080, true}, {Ip("10.2.0.1"), 8080, false}};
    port_.local = {{Ip("10.1.0.1"), 8080, true}};
    port_.has_endpoints = true;
  }
  void Set() { plan_.SetService("default/web", {port_}); }
  std::vector<std::string> Elements(const std::string& set) {
    const nft::Ruleset wanted = plan_.Wanted();
    auto found = wanted.sets.find(set);
    std::vector<std::string> out;
    if (found == wanted.sets.end()) return {"no such set"};
    for (const auto& [key, element] : found->second.elements) {
      out.push_back(nft::ToText(found->second.set, element));
    }
    std::sort(out.begin(), out.end());
    return out;
  }
  std::string Chain(const std::string& name) {
    const nft::Ruleset wanted = plan_.Wanted();
    auto found = wanted.chains.find(name);
    if (found == wanted.chains.end()) return "no such chain";
    std::string out;
    for (const nft::Rule& rule : found->second.rules) out += nft::ToText(rule) + "\n";
    return out;
  }

  Plan plan_{Options{.pod_cidrs = {*IpPrefix::Parse("10.1.0.0/16")}, .ipvs = true}};
  ResolvedPort port_;
};

TEST_F(IpvsRulesTest, MarksAndPicksNothing) {
  Set();
  EXPECT_THAT(Elements("use-pick-0"), ElementsAre("10.96.0.1 . tcp . 80"));
  EXPECT_THAT(Elements("use-pick-external-0"), ElementsAre("192.0.2.1 . tcp . 80"));
  EXPECT_THAT(Elements("use-nodeport-0"), ElementsAre("tcp . 30080"));
  EXPECT_THAT(Elements("endpoints"), IsEmpty());
  EXPECT_THAT(Elements("nodeport-endpoints"), IsEmpty());
  for (const char* chain : {"pick-0", "pick-external-0", "nodeport-0"}) {
    EXPECT_THAT(Chain(chain), HasSubstr("meta mark")) << chain;
    EXPECT_THAT(Chain(chain), Not(HasSubstr("dnat"))) << chain;
  }
  // Of any number of endpoints it is one chain: one less is nothing to the table.
  plan_.TakeChanges();
  port_.cluster.resize(1);
  Set();
  EXPECT_THAT(plan_.TakeChanges().ops(), IsEmpty());
  EXPECT_EQ(Chain("pick-1"), "no such chain");
}

TEST_F(IpvsRulesTest, PodsAndTheNodeAreSentPastPolicyLocal) {
  port_.service.external_local = true;
  Set();
  EXPECT_THAT(Elements("endpoints"), ElementsAre("192.0.2.1 . tcp . 80 . 0 : 10.1.0.1 . 8080",
                                                 "192.0.2.1 . tcp . 80 . 1 : 10.2.0.1 . 8080"));
  EXPECT_THAT(Elements("use-pick-local-2-0"), ElementsAre("192.0.2.1 . tcp . 80"));
  EXPECT_THAT(Chain("pick-local-2-0"), HasSubstr("dnat"));
  EXPECT_THAT(Elements("drop-services"), IsEmpty());
  port_.local.clear();
  Set();
  EXPECT_THAT(Elements("drop-services"), ElementsAre("192.0.2.1 . tcp . 80"));
  EXPECT_THAT(Elements("drop-nodeports"), ElementsAre("tcp . 30080"));
}

TEST_F(IpvsRulesTest, GuardsTheAddressesThatItIsToldOf) {
  Set();
  EXPECT_THAT(Elements("cluster-ips"), IsEmpty());
  plan_.Guard(Ip("10.96.0.1"), true);
  plan_.Guard(Ip("192.0.2.1"), true);
  plan_.Guard(Ip("192.0.2.1"), false);
  EXPECT_THAT(Elements("cluster-ips"), ElementsAre("10.96.0.1"));
  EXPECT_THAT(Chain("filter-input"), HasSubstr("jump cluster-ips"));
  const std::string guard = Chain("cluster-ips");
  EXPECT_LT(guard.find("@services"), guard.find("@cluster-ips"));
  EXPECT_LT(guard.find("@cluster-ips"), guard.find("fib daddr type"));
  plan_.ForgetServices();
  EXPECT_THAT(Elements("services"), IsEmpty());
  EXPECT_THAT(Elements("cluster-ips"), ElementsAre("10.96.0.1"));
}

TEST_F(IpvsRulesTest, WithoutEndpointsItRefuses) {
  port_.cluster.clear();
  port_.local.clear();
  port_.has_endpoints = false;
  Set();
  EXPECT_THAT(Elements("services"), IsEmpty());
  EXPECT_THAT(Elements("reject-services"), ElementsAre("10.96.0.1 . tcp . 80", "192.0.2.1 . tcp . 80"));
  EXPECT_THAT(Elements("reject-nodeports"), ElementsAre("tcp . 30080"));
}

}  // namespace
}  // namespace keelson::proxy::nftables
