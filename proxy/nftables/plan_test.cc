#include "proxy/nftables/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <cstdint>

#include "lib/nft/diff.h"
#include "lib/nft/testing/fake.h"
#include "lib/nft/text.h"
#include "proxy/nftables/dataplane.h"
#include "proxy/nftables/testing/resolved_ports.h"

namespace keelson::proxy::nftables {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Elements and pick chains only: what Services contribute.
std::string Contribution(const Plan& plan) {
  nft::Ruleset wanted = plan.Wanted(), fixed = FixedRuleset(plan.options());
  for (const auto& [name, contents] : fixed.chains) {
    if (wanted.chains[name].rules.size() == contents.rules.size()) wanted.chains.erase(name);
  }
  std::erase_if(wanted.sets, [](const auto& set) { return set.second.elements.empty(); });
  for (const PickSpec& spec : StockPicks({})) {
    if (!wanted.sets.contains(UseSet(spec, true).name)) wanted.chains.erase(spec.ChainName());
  }
  return nft::ToText(wanted);
}

TEST(Plan, GoldenClusterIp) {
  Plan plan(Options{.pod_cidrs = {*IpPrefix::Parse("10.1.0.0/16")}});
  plan.SetService("default/web", {Port("10.96.0.1", {"10.1.0.1*", "10.1.1.1"})});
  EXPECT_EQ(Contribution(plan), R"(table ip keelson-proxy {
  set cluster-ips { type ipv4_addr }
    10.96.0.1
  map endpoints { type ipv4_addr . inet_proto . inet_service . mark : ipv4_addr . inet_service }
    10.96.0.1 . tcp . 80 . 0 : 10.1.0.1 . 8080
    10.96.0.1 . tcp . 80 . 1 : 10.1.1.1 . 8080
  set hairpin { type ipv4_addr . ipv4_addr }
    10.1.0.1 . 10.1.0.1
  set local-endpoints { type ipv4_addr }
    10.1.0.1
  set services { type ipv4_addr . inet_proto . inet_service }
    10.96.0.1 . tcp . 80
  set use-pick-2 { type ipv4_addr . inet_proto . inet_service }
    10.96.0.1 . tcp . 80
  chain dispatch
    r0 = ip daddr; r1 = meta l4proto; r2 = th dport; r0 in @use-pick-2; goto pick-2
  chain pick-2
    r0 = ip saddr; r0 = r0 & 0xffff0000 ^ 0x00000000; r0 != 0x0a010000; r15 = meta mark; r15 = r15 & 0xffbfffff ^ 0x00400000; meta mark = r15
    r0 = ip daddr; r1 = meta l4proto; r2 = th dport; r3 = numgen random mod 2; r0 = @endpoints[r0]; dnat r0 port r1
}
)");
}

TEST(Plan, GoldenFixedPart) {
  std::string text = nft::ToText(FixedRuleset(Options{}));
  for (const char* line :
       {"chain nat-prerouting { type nat hook prerouting priority -100 }\n    jump services",
        "chain nat-output { type nat hook output priority -100 }\n    jump services",
        "chain services\n    r0 = ip daddr; r1 = meta l4proto; r2 = th dport; r0 in @services; goto "
        "dispatch\n"
        "    r0 = ip daddr; r0 in @nodeport-ips; r0 = meta l4proto; r1 = th dport; r0 in @nodeports; "
        "goto dispatch-nodeports",
        "chain reject\n    r0 = meta l4proto; r0 == 0x06; reject with tcp reset\n    reject with "
        "port-unreachable",
        "chain cluster-ips\n    r0 = fib daddr type; r0 == 0x02000000; return\n    r0 = ip daddr; r0 in "
        "@cluster-ips; goto reject\n    goto service-cidrs",
        "chain filter-output { type filter hook output priority -110 }",
        "chain filter-output-post-dnat { type filter hook output priority -90 }",
        "r15 = ct status; r15 = r15 & 0x20000000 ^ 0x00000000; r15 != 0x00000000; r0 = ip saddr; r1 = ip "
        "daddr; "
        "r0 in @hairpin; masquerade fully-random"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
  EXPECT_THAT(nft::ToText(FixedRuleset(Options{.v4 = false})),
              HasSubstr("r0 = ip6 daddr; r4 = meta l4proto; r5 = th dport; r0 in @services"));
}

TEST(Plan, MasqueradesToPortsBelow) {
  const std::string text = nft::ToText(FixedRuleset(Options{.masquerade_below = 61000}));
  EXPECT_THAT(text, HasSubstr("r0 = 0x0400; r1 = 0xee47; masquerade to ports r0 to r1 fully-random"));
  EXPECT_THAT(text, HasSubstr("r0 in @hairpin; r0 = 0x0400; r1 = 0xee47; masquerade to ports r0 to r1"));
  EXPECT_THAT(text, Not(HasSubstr("masquerade fully-random")));
}

TEST(Plan, ExternalTrafficPolicies) {
  Plan plan{Options{}};
  ResolvedPort port = Port("10.96.0.1", {"10.1.0.1*", "10.1.1.1"});
  port.service.node_port = 30080;
  port.service.external_ips = {Ip("192.0.2.1")};
  plan.SetService("default/web", {port});
  std::string text = Contribution(plan);
  EXPECT_THAT(text, HasSubstr("goto nodeport-2"));
  EXPECT_THAT(text, HasSubstr("goto pick-external-2"));
  EXPECT_THAT(text, HasSubstr("tcp . 30080 . 1 : 10.1.1.1 . 8080"));
  EXPECT_THAT(text, HasSubstr("192.0.2.1 . tcp . 80 . 0 : 10.1.0.1 . 8080"));

  port.service.external_local = true;
  port.local = Backends({"10.1.0.1*"});
  plan.SetService("default/web", {port});
  text = Contribution(plan);
  EXPECT_THAT(text, HasSubstr("goto nodeport-local-2-1"));
  EXPECT_THAT(text, HasSubstr("tcp . 30080 . 65536 : 10.1.0.1 . 8080"));
  EXPECT_THAT(text, HasSubstr("numgen random mod 1 offset 65536"));
  EXPECT_THAT(text, Not(HasSubstr("drop-nodeports")));

  port.local.clear();
  plan.SetService("default/web", {port});
  text = Contribution(plan);
  EXPECT_THAT(text, HasSubstr("set drop-nodeports { type inet_proto . inet_service }\n    tcp . 30080"));
  EXPECT_THAT(
      text,
      HasSubstr(
          "set drop-services { type ipv4_addr . inet_proto . inet_service }\n    192.0.2.1 . tcp . 80"));

  port.cluster.clear();
  port.has_endpoints = false;
  plan.SetService("default/web", {port});
  text = Contribution(plan);
  EXPECT_THAT(text, HasSubstr("set reject-nodeports { type inet_proto . inet_service }\n    tcp . 30080"));
  EXPECT_THAT(text, HasSubstr("10.96.0.1 . tcp . 80\n    192.0.2.1 . tcp . 80"));
  EXPECT_THAT(text, Not(HasSubstr("chain ")));
}

TEST(Plan, InternalTrafficPolicyLocalWithoutLocalEndpointsDrops) {
  Plan plan{Options{}};
  ResolvedPort port = Port("10.96.0.1", {"10.1.1.1"});
  port.service.internal_local = true;
  port.cluster.clear();
  plan.SetService("default/web", {port});
  EXPECT_THAT(Contribution(plan), HasSubstr("set drop-services"));
  EXPECT_THAT(Contribution(plan), Not(HasSubstr("set services")));
}

TEST(Plan, SourceRangesGuardLoadBalancerAddresses) {
  Plan plan{Options{}};
  ResolvedPort port = Port("10.96.0.1", {"10.1.1.1"});
  port.service.load_balancer_ips = {Ip("192.0.2.1")};
  port.service.source_ranges = {*IpPrefix::Parse("203.0.113.0/24")};
  plan.SetService("default/web", {port});
  EXPECT_THAT(Contribution(plan),
              HasSubstr("192.0.2.1 . tcp . 80 . 203.0.113.0-192.0.2.1 . tcp . 80 . 203.0.113.255"));
}

TEST(Plan, ChangesCostWhatChanges) {
  Plan plan{Options{}};
  for (int i = 0; i < 100; ++i) {
    ResolvedPort port = Port("10.96.0.1", {"10.1.0.1", "10.1.0.2", "10.1.0.3"});
    port.service.cluster_ip = Ip("10.96.0.1").Plus(i);
    plan.SetService("default/web-" + std::to_string(i), {port});
  }
  plan.TakeChanges();
  EXPECT_TRUE(plan.TakeChanges().empty());

  ResolvedPort port = Port("10.96.0.1", {"10.1.0.1", "10.1.0.2", "10.1.0.4"});
  plan.SetService("default/web-0", {port});
  EXPECT_EQ(nft::ToText(plan.TakeChanges()),
            "table ip keelson-proxy\n"
            "delete element endpoints { 10.96.0.1 . tcp . 80 . 2 : 10.1.0.3 . 8080 }\n"
            "add element endpoints { 10.96.0.1 . tcp . 80 . 2 : 10.1.0.4 . 8080 }\n");

  // The first endpoint goes: the last one takes its slot.
  port.cluster = Backends({"10.1.0.2", "10.1.0.4"});
  plan.SetService("default/web-0", {port});
  std::string text = nft::ToText(plan.TakeChanges());
  EXPECT_THAT(text, HasSubstr("add chain pick-2"));
  EXPECT_THAT(text, HasSubstr("add element endpoints { 10.96.0.1 . tcp . 80 . 0 : 10.1.0.4 . 8080 }"));
  EXPECT_THAT(text, Not(HasSubstr(": 10.1.0.2 . 8080,")));
  EXPECT_THAT(text, HasSubstr("add element use-pick-2 { 10.96.0.1 . tcp . 80 }"));

  plan.SetService("default/web-0", {port});
  EXPECT_TRUE(plan.TakeChanges().empty());
  plan.SetService("default/web-0", {});
  text = nft::ToText(plan.TakeChanges());
  EXPECT_THAT(text, HasSubstr("delete element use-pick-2 { 10.96.0.1 . tcp . 80 }"));
  EXPECT_THAT(text, Not(HasSubstr("chain")));  // nobody picks of two now, but somebody may again
  EXPECT_THAT(text, Not(HasSubstr("add element")));
}

TEST(Plan, PickChainsWithoutUsersStayForAWhile) {
  auto fake = std::make_unique<nft::FakeKernel>();
  nft::FakeKernel& kernel = *fake;
  Dataplane dataplane(std::move(fake), Options{});
  constexpr auto kStock = static_cast<int>(kStockPicks);
  auto sync = [&](int endpoints) {
    ResolvedPort port = Port("10.96.0.1", {});
    for (int i = 0; i < kStock + endpoints; ++i) {
      port.cluster.push_back({Ip("10.1.0.1").Plus(i), 8080, false});
    }
    port.has_endpoints = true;
    dataplane.plan().SetService("default/web", {port});
    auto done = dataplane.Sync();
    EXPECT_TRUE(done) << done.error().message();
    auto chains = kernel.Read(Options{}.Table())->value().chains;
    std::string picks;
    for (const auto& [name, contents] : chains) {
      int slots = name.starts_with("pick-") ? std::stoi(name.substr(5)) : 0;
      if (slots > kStock) picks += (picks.empty() ? "" : " ") + std::to_string(slots - kStock);
    }
    EXPECT_TRUE(nft::Diff(*kernel.Read(Options{}.Table()), dataplane.plan().Wanted()).empty()) << endpoints;
    return picks;
  };
  EXPECT_EQ(sync(1), "1");
  EXPECT_EQ(sync(2), "1 2");
  EXPECT_EQ(sync(1), "1 2");
  for (int i : {3, 4}) sync(i);
  EXPECT_EQ(sync(5), "1 2 3 4 5");
  EXPECT_EQ(sync(6), "1 3 4 5 6");  // 2 has rested longest
  EXPECT_EQ(sync(2), "2 3 4 5 6");  // 1 goes in its turn
  // Who starts anew, or looks at the tables, takes only what is used.
  dataplane.Distrust();
  EXPECT_EQ(sync(2), "2");
  EXPECT_EQ(sync(3), "2 3");
}

TEST(Plan, CommonPickChainsAreThereBeforeAnybodyNeedsThem) {
  auto fake = std::make_unique<nft::FakeKernel>();
  nft::FakeKernel& kernel = *fake;
  Dataplane dataplane(std::move(fake), Options{});
  auto dispatch = [&] {
    std::string out;
    const nft::Ruleset found = kernel.Read(Options{}.Table())->value();
    for (const nft::Rule& rule : found.chains.at("dispatch").rules) {
      std::string text = nft::ToText(rule);
      out += (out.empty() ? "" : " ") + text.substr(text.rfind(' ') + 1);
    }
    return out;
  };
  ASSERT_TRUE(dataplane.Sync());
  EXPECT_EQ(dispatch(), "");
  auto chains = [&] { return kernel.Read(Options{}.Table())->value().chains.size(); };
  const size_t before = chains();
  std::initializer_list<const char*> all = {"10.1.0.1", "10.1.0.2", "10.1.0.3"};
  for (size_t count : {1, 2, 3, 1}) {
    ResolvedPort port = Port("10.96.0.1", all);
    port.cluster.resize(count);
    dataplane.plan().SetService("default/web", {port});
    ASSERT_TRUE(dataplane.Sync());
    EXPECT_EQ(chains(), before);
    EXPECT_TRUE(nft::Diff(*kernel.Read(Options{}.Table()), dataplane.plan().Wanted()).empty());
  }
  EXPECT_EQ(dispatch(), "pick-1 pick-2 pick-3");
  dataplane.Distrust();
  ASSERT_TRUE(dataplane.Sync());
  EXPECT_EQ(dispatch(), "pick-1");
  EXPECT_EQ(chains(), before);
}

TEST(Plan, TheFirstClaimHoldsAndTheNextInherits) {
  Plan plan{Options{}};
  ResolvedPort a = Port("10.96.0.1", {"10.1.0.1"}), b = Port("10.96.0.2", {"10.1.0.2"});
  a.service.external_ips = b.service.external_ips = {Ip("192.0.2.1")};
  plan.SetService("default/a", {a});
  plan.SetService("default/b", {b});
  EXPECT_THAT(Contribution(plan), HasSubstr("192.0.2.1 . tcp . 80 . 0 : 10.1.0.1 . 8080"));
  plan.TakeChanges();
  plan.SetService("default/a", {});
  EXPECT_THAT(Contribution(plan), HasSubstr("192.0.2.1 . tcp . 80 . 0 : 10.1.0.2 . 8080"));
  EXPECT_THAT(nft::ToText(plan.TakeChanges()), HasSubstr("192.0.2.1 . tcp . 80 . 0 : 10.1.0.2 . 8080"));
}

// For random changes, the incremental result equals that of a fresh start.
TEST(Plan, ChangesAndFreshStartAgree) {
  auto fake = std::make_unique<nft::FakeKernel>();
  nft::FakeKernel& kernel = *fake;
  Dataplane dataplane(std::move(fake), Options{.pod_cidrs = {*IpPrefix::Parse("10.1.0.0/16")}});
  uint32_t seed = 12345;
  auto random = [&](uint32_t below) { return (seed = seed * 1664525u + 1013904223u) / 65536u % below; };
  for (int step = 0; step < 120; ++step) {
    for (uint32_t changes = random(4); changes-- > 0;) {
      uint32_t i = random(8);
      ResolvedPort port = Port("10.96.0.1", {});
      port.service.cluster_ip = Ip("10.96.0.1").Plus(i);
      if (random(3) == 0) port.service.external_ips = {Ip("192.0.2.1").Plus(random(2))};
      if (random(3) == 0) port.service.node_port = static_cast<uint16_t>(30000 + random(3));
      if (random(3) == 0) port.service.affinity = std::chrono::seconds(10 + random(2));
      port.service.external_local = random(2);
      for (uint32_t e = 0; e < random(6); ++e) {
        port.cluster.push_back({Ip("10.1.0.1").Plus(random(20)), 80, random(2) == 0});
      }
      std::sort(port.cluster.begin(), port.cluster.end());
      port.cluster.erase(std::unique(port.cluster.begin(), port.cluster.end(),
                                     [](const Backend& a, const Backend& b) { return a.ip == b.ip; }),
                         port.cluster.end());
      for (const Backend& b : port.cluster) {
        if (b.local) port.local.push_back(b);
      }
      port.has_endpoints = !port.cluster.empty();
      bool gone = random(5) == 0;
      dataplane.plan().SetService("ns/" + std::to_string(i),
                                  gone ? std::vector<ResolvedPort>{} : std::vector{port});
    }
    auto synced = dataplane.Sync();
    ASSERT_TRUE(synced) << synced.error().message();
    nft::Transaction rest =
        nft::Diff(*kernel.Read(dataplane.plan().options().Table()), dataplane.plan().Wanted());
    ASSERT_TRUE(rest.empty()) << "step " << step << "\n" << nft::ToText(rest);
  }
}

TEST(Plan, StickyEndpointsKeepTheirSlots) {
  Plan plan{Options{}};
  ResolvedPort port = Port("10.96.0.1", {"10.1.0.1", "10.1.0.2", "10.1.0.3", "10.1.0.4"});
  port.service.affinity = std::chrono::seconds(60);
  plan.SetService("default/web", {port});
  plan.TakeChanges();
  port.cluster = Backends({"10.1.0.1", "10.1.0.3", "10.1.0.4"});
  plan.SetService("default/web", {port});
  EXPECT_EQ(nft::ToText(plan.TakeChanges()),
            "table ip keelson-proxy\n"
            "delete element endpoints { 10.96.0.1 . tcp . 80 . 1 : 10.1.0.2 . 8080 }\n");
  port.cluster = Backends({"10.1.0.1", "10.1.0.3", "10.1.0.4", "10.1.0.9"});
  plan.SetService("default/web", {port});
  EXPECT_EQ(nft::ToText(plan.TakeChanges()),
            "table ip keelson-proxy\n"
            "add element endpoints { 10.96.0.1 . tcp . 80 . 1 : 10.1.0.9 . 8080 }\n");
  // More holes than endpoints: closed up.
  port.cluster = Backends({"10.1.0.4"});
  plan.SetService("default/web", {port});
  EXPECT_THAT(Contribution(plan), HasSubstr("10.96.0.1 . tcp . 80 . 0 : 10.1.0.4 . 8080"));
  EXPECT_THAT(Contribution(plan), HasSubstr("goto pick-1-sticky-60"));
}

TEST(Plan, FiveThousandEndpointsOfOneService) {
  for (auto affinity : {std::chrono::seconds(0), std::chrono::seconds(60)}) {
    auto fake = std::make_unique<nft::FakeKernel>();
    nft::FakeKernel& kernel = *fake;
    Dataplane dataplane(std::move(fake), Options{});
    ResolvedPort port = Port("10.96.0.1", {});
    port.service.affinity = affinity;
    port.has_endpoints = true;
    for (int i = 0; i < 5000; ++i) port.cluster.push_back({Ip("10.64.0.1").Plus(i), 80, false});
    dataplane.plan().SetService("default/web", {port});
    ASSERT_TRUE(dataplane.Sync());
    EXPECT_EQ(kernel.Read(Options{}.Table())->value().sets["endpoints"].elements.size(), 5000u);
    port.cluster[2500].ip = Ip("10.80.0.1");  // replaced: two elements, whatever the size
    std::sort(port.cluster.begin(), port.cluster.end());
    dataplane.plan().SetService("default/web", {port});
    EXPECT_EQ(dataplane.plan().TakeChanges().ops().size(), 2u);
  }
}

TEST(Plan, PodsAreToldByCidrOrInterface) {
  auto text = [](Options options) {
    std::string out;
    for (const nft::Rule& rule :
         PickChainRules({.kind = PickSpec::Kind::kExternalLocal, .cluster = 1, .local = 1}, options)) {
      out += nft::ToText(rule) + "\n";
    }
    for (const nft::Rule& rule : PickChainRules({.cluster = 1}, options)) out += nft::ToText(rule) + "\n";
    return out;
  };
  EXPECT_THAT(
      text({.pod_cidrs = {*IpPrefix::Parse("10.1.0.0/16"), *IpPrefix::Parse("10.3.0.0/16")}}),
      HasSubstr("r0 != 0x0a010000; r0 = ip saddr; r0 = r0 & 0xffff0000 ^ 0x00000000; r0 != 0x0a030000; "
                "r15 = meta mark"));
  std::string bridge = text({.pod_bridge = "cni0"});
  EXPECT_THAT(bridge, HasSubstr("r0 = meta iifname; r0 == 0x636e6930000000000000000000000000; "));
  EXPECT_THAT(bridge,
              HasSubstr("r0 = meta iifname; r0 != 0x636e6930000000000000000000000000; r15 = meta mark"));
  EXPECT_THAT(text({.pod_interface_prefix = "veth"}), HasSubstr("r0 = meta iifname; r0 == 0x76657468; "));
  EXPECT_THAT(text({}), Not(HasSubstr("iifname")));
}

TEST(Plan, UnallocatedServiceAddressesAreDropped) {
  Plan plan{Options{}};
  plan.SetServiceCidrs({*IpPrefix::Parse("10.96.0.0/12"), *IpPrefix::Parse("fd96::/108")});
  EXPECT_EQ(
      nft::ToText(plan.TakeChanges()),
      "table ip keelson-proxy\n"
      "flush chain service-cidrs\n"
      "add rule service-cidrs r0 = ip daddr; r0 = r0 & 0xfff00000 ^ 0x00000000; r0 == 0x0a600000; drop\n");
  plan.SetServiceCidrs({*IpPrefix::Parse("10.96.0.0/12"), *IpPrefix::Parse("fd96::/108")});
  EXPECT_TRUE(plan.TakeChanges().empty());
}

}  // namespace
}  // namespace keelson::proxy::nftables
