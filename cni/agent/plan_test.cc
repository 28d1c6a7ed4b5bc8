#include "cni/agent/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cni/agent/conflist.h"
#include "cni/agent/dataplane.h"
#include "cni/agent/masquerade.h"
#include "lib/base/file.h"
#include "lib/nft/diff.h"
#include "lib/nft/testing/fake.h"
#include "lib/nft/text.h"

namespace keelson::cni::agent {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

IpPrefix Prefix(std::string_view text) { return *IpPrefix::Parse(text); }
IpAddress Ip(std::string_view text) { return *IpAddress::Parse(text); }

std::vector<IpPrefix> Prefixes(std::initializer_list<const char*> texts) {
  std::vector<IpPrefix> out;
  for (const char* text : texts) out.push_back(Prefix(text));
  return out;
}

NodeInfo Node(std::string name, std::initializer_list<const char*> cidrs,
              std::initializer_list<const char*> ips) {
  NodeInfo node;
  node.name = std::move(name);
  node.pod_cidrs = Prefixes(cidrs);
  for (const char* ip : ips) node.addresses.push_back(Ip(ip));
  return node;
}

NodeMap Map(std::vector<NodeInfo> nodes) {
  NodeMap out;
  for (NodeInfo& node : nodes) out[node.name] = std::move(node);
  return out;
}

// eth0 (2) with 10.0.0.1/24 and fd10::1/64, and default routes by 10.0.0.254 and fd10::fe.
HostState Host(int mtu = 1500) {
  HostState host;
  host.links = {{.index = 1, .name = "lo", .mtu = 65536, .up = true, .loopback = true},
                {.index = 2, .name = "eth0", .mtu = mtu, .up = true}};
  host.addresses = {{.link_index = 2, .prefix = Prefix("10.0.0.1/24")},
                    {.link_index = 2, .prefix = Prefix("fd10::1/64")}};
  host.routes = {{.destination = Prefix("0.0.0.0/0"), .gateway = Ip("10.0.0.254"), .link_index = 2},
                 {.destination = Prefix("10.0.0.0/24"), .link_index = 2, .protocol = 2},
                 {.destination = Prefix("::/0"), .gateway = Ip("fd10::fe"), .link_index = 2, .metric = 1024},
                 {.destination = Prefix("fd10::/64"), .link_index = 2, .metric = 256, .protocol = 2}};
  return host;
}

Config For(Mode mode = Mode::kAuto) {
  Config config;
  config.node_name = "a";
  config.mode = mode;
  return config;
}

std::vector<std::string> Lines(const Plan& plan) {
  std::vector<std::string> out;
  for (const netlink::Route& route : plan.routes) {
    std::string line = route.destination.ToString();
    if (route.gateway) line += " via " + route.gateway->ToString();
    line += route.link_index == kTunnelLink ? " tunnel" : " dev " + std::to_string(route.link_index);
    if (route.onlink) line += " onlink";
    out.push_back(line);
  }
  return out;
}

struct RouteCase {
  const char* what;
  Mode mode;
  NodeInfo self, peer;
  std::vector<std::string> routes;
  int mtu;
  const char* problem = nullptr;
};

TEST(Plan, RoutesToOnePeer) {
  NodeInfo self = Node("a", {"10.244.1.0/24"}, {"10.0.0.1"});
  NodeInfo dual = Node("a", {"10.244.1.0/24", "fd44:1::/64"}, {"10.0.0.1", "fd10::1"});
  NodeInfo near = Node("b", {"10.244.2.0/24"}, {"10.0.0.2"});
  NodeInfo far = Node("b", {"10.244.2.0/24"}, {"10.9.0.2"});
  const RouteCase cases[] = {
      {"on-link", Mode::kAuto, self, near, {"10.244.2.0/24 via 10.0.0.2 dev 2"}, 1500},
      {"off-link", Mode::kAuto, self, far, {"10.244.2.0/24 via 10.244.2.0 tunnel onlink"}, 1450},
      {"vxlan though on-link",
       Mode::kVxlan,
       self,
       near,
       {"10.244.2.0/24 via 10.244.2.0 tunnel onlink"},
       1450},
      {"host-gw though off-link", Mode::kHostGw, self, far, {}, 1500, "node b: 10.9.0.2 is on no link"},
      {"none", Mode::kNone, self, near, {}, 1500},
      {"dual stack on-link",
       Mode::kAuto,
       dual,
       Node("b", {"10.244.2.0/24", "fd44:2::/64"}, {"10.0.0.2", "fd10::2"}),
       {"10.244.2.0/24 via 10.0.0.2 dev 2", "fd44:2::/64 via fd10::2 dev 2"},
       1500},
      {"dual stack off-link",
       Mode::kAuto,
       dual,
       Node("b", {"10.244.2.0/24", "fd44:2::/64"}, {"10.9.0.2", "fd11::2"}),
       {"10.244.2.0/24 via 10.244.2.0 tunnel onlink", "fd44:2::/64 via fd44:2:: tunnel onlink"},
       1450},
      {"IPv6 pods on an IPv4 underlay",
       Mode::kAuto,
       dual,
       Node("b", {"10.244.2.0/24", "fd44:2::/64"}, {"10.0.0.2"}),
       {"10.244.2.0/24 via 10.0.0.2 dev 2", "fd44:2::/64 via fd44:2:: tunnel onlink"},
       1450},
      {"IPv6 underlay",
       Mode::kVxlan,
       Node("a", {"fd44:1::/64"}, {"fd10::1"}),
       Node("b", {"fd44:2::/64"}, {"fd11::2"}),
       {"fd44:2::/64 via fd44:2:: tunnel onlink"},
       1430},
      {"peer without an address",
       Mode::kAuto,
       self,
       Node("b", {"10.244.2.0/24"}, {}),
       {},
       1500,
       "node b: no way"},
      {"peer without a CIDR", Mode::kAuto, self, Node("b", {}, {"10.0.0.2"}), {}, 1500},
  };
  for (const RouteCase& c : cases) {
    SCOPED_TRACE(c.what);
    Result<Plan> plan = MakePlan(For(c.mode), Map({c.self, c.peer}), Host());
    ASSERT_TRUE(plan) << plan.error().message();
    EXPECT_EQ(Lines(*plan), c.routes);
    EXPECT_EQ(plan->pod_mtu, c.mtu);
    if (c.problem) {
      EXPECT_THAT(plan->problems, Contains(HasSubstr(c.problem)));
    } else {
      EXPECT_THAT(plan->problems, IsEmpty());
    }
  }
}

TEST(Plan, TheTunnelKnowsItsPeersBeforehand) {
  NodeInfo self = Node("a", {"10.244.1.0/24", "fd44:1::/64"}, {"10.0.0.1"});
  NodeInfo far = Node("b", {"10.244.2.0/24", "fd44:2::/64"}, {"10.9.0.2"});
  Plan plan = *MakePlan(For(), Map({self, far}), Host());
  ASSERT_TRUE(plan.vxlan);
  EXPECT_EQ(plan.vxlan->vxlan.local, Ip("10.0.0.1"));
  EXPECT_FALSE(plan.vxlan->vxlan.learning);
  EXPECT_EQ(plan.vxlan->mac, TunnelMac("a"));
  EXPECT_EQ(plan.vxlan->mtu, 1450);
  EXPECT_EQ(plan.vxlan->addresses, Prefixes({"10.244.1.0/32", "fd44:1::/128"}));
  ASSERT_EQ(plan.neighbors.size(), 2u);
  EXPECT_EQ(plan.neighbors[0].address, Ip("10.244.2.0"));
  EXPECT_EQ(plan.neighbors[1].address, Ip("fd44:2::"));
  EXPECT_EQ(plan.neighbors[1].mac, TunnelMac("b"));
  ASSERT_EQ(plan.forwarding.size(), 1u);
  EXPECT_EQ(plan.forwarding[0].mac, TunnelMac("b"));
  EXPECT_EQ(plan.forwarding[0].destination, Ip("10.9.0.2"));
  // The other node draws the mirror image without any exchange.
  Config other = For();
  other.node_name = "b";
  HostState host = Host();
  host.addresses[0].prefix = Prefix("10.9.0.2/24");
  host.routes[1].destination = Prefix("10.9.0.0/24");
  Plan mirror = *MakePlan(other, Map({self, far}), host);
  EXPECT_EQ(mirror.vxlan->mac, plan.forwarding[0].mac);
  EXPECT_EQ(mirror.forwarding[0].mac, plan.vxlan->mac);
}

TEST(Plan, TunnelMacsAreUnicastLocalAndApart) {
  std::set<netlink::MacAddress> seen;
  for (int i = 0; i < 5000; ++i) {
    netlink::MacAddress mac = TunnelMac("node-" + std::to_string(i));
    EXPECT_EQ(mac.bytes()[0] & 3, 2);
    seen.insert(mac);
  }
  EXPECT_EQ(seen.size(), 5000u);
}

TEST(Plan, ContradictingNodesAreLeftOut) {
  NodeInfo self = Node("m", {"10.244.1.0/24"}, {"10.0.0.1"});
  const struct {
    NodeInfo peer;
    const char* problem;
  } cases[] = {
      {Node("x", {"10.244.1.128/25"}, {"10.0.0.2"}), "overlaps 10.244.1.0/24 of node m"},
      {Node("c", {"10.244.0.0/16"}, {"10.0.0.2"}), "overlaps 10.244.1.0/24 of node m"},
      {Node("c", {"0.0.0.0/0"}, {"10.0.0.2"}), "cannot hold pods"},
      {Node("c", {"127.0.0.0/8"}, {"10.0.0.2"}), "cannot hold pods"},
      {Node("c", {"224.0.0.0/8"}, {"10.0.0.2"}), "cannot hold pods"},
      {Node("c", {"fe80::/64"}, {"10.0.0.2"}), "cannot hold pods"},
      {Node("c", {"10.0.0.0/24"}, {"10.0.0.2"}), "holds the address 10.0.0.1 of node m"},
      {Node("c", {"10.77.0.0/16"}, {"10.77.0.2"}), "holds the address 10.77.0.2 of node c"},
      {Node("x", {"10.244.8.0/22"}, {"10.0.0.2"}), "overlaps 10.244.9.0/24 of node good"},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.problem);
    Config config = For();
    config.node_name = "m";
    Plan plan = *MakePlan(config, Map({self, c.peer, Node("good", {"10.244.9.0/24"}, {"10.0.0.3"})}), Host());
    EXPECT_THAT(Lines(plan), ElementsAre("10.244.9.0/24 via 10.0.0.3 dev 2"));
    EXPECT_THAT(plan.problems, ElementsAre(HasSubstr(c.problem)));
  }
}

TEST(Plan, NeedsItsOwnNodeAndCidr) {
  EXPECT_EQ(MakePlan(For(), Map({Node("b", {"10.244.2.0/24"}, {"10.0.0.2"})}), Host()).error().code(),
            Code::kNotFound);
  EXPECT_EQ(MakePlan(For(), Map({Node("a", {}, {"10.0.0.1"})}), Host()).error().code(), Code::kNotFound);
}

TEST(Plan, MtuFollowsUplinkAndEncapsulation) {
  NodeMap nodes =
      Map({Node("a", {"10.244.1.0/24"}, {"10.0.0.1"}), Node("b", {"10.244.2.0/24"}, {"10.0.0.2"})});
  Config config = For();
  EXPECT_EQ(MakePlan(config, nodes, Host(9000))->pod_mtu, 9000);
  config.mode = Mode::kVxlan;
  EXPECT_EQ(MakePlan(config, nodes, Host(9000))->pod_mtu, 8950);
  config.mtu = 1400;
  EXPECT_EQ(MakePlan(config, nodes, Host())->pod_mtu, 1400);
  EXPECT_EQ(MakePlan(config, nodes, Host())->vxlan->mtu, 1400);
  config = For();
  config.encryption = Encryption::kIpsec;
  EXPECT_EQ(MakePlan(config, nodes, Host())->pod_mtu, 1443);
  config.encryption = Encryption::kWireguard;
  EXPECT_EQ(MakePlan(config, nodes, Host())->pod_mtu, 1440);
  EXPECT_EQ(Overhead(Encryption::kNone, true, false), 70);
  EXPECT_EQ(Overhead(Encryption::kWireguard, false, false), 80);
}

TEST(Plan, EncryptedWays) {
  NodeInfo far = Node("c", {"10.244.3.0/24"}, {"10.9.0.2"});
  far.wireguard_key = "key";
  NodeMap nodes =
      Map({Node("a", {"10.244.1.0/24"}, {"10.0.0.1"}), Node("b", {"10.244.2.0/24"}, {"10.0.0.2"}), far});
  Config config = For();
  config.encryption = Encryption::kIpsec;
  EXPECT_THAT(Lines(*MakePlan(config, nodes, Host())),
              ElementsAre("10.244.2.0/24 via 10.0.0.2 dev 2", "10.244.3.0/24 via 10.0.0.254 dev 2"));
  config.encryption = Encryption::kWireguard;
  Plan plan = *MakePlan(config, nodes, Host());
  EXPECT_THAT(Lines(plan), ElementsAre("10.244.3.0/24 tunnel"));
  EXPECT_THAT(plan.problems, ElementsAre(HasSubstr("node b: has published no WireGuard key")));
}

TEST(Plan, LookupPrefersLongPrefixesAndIgnoresOwnRoutes) {
  HostState host = Host();
  host.routes.push_back({.destination = Prefix("10.9.0.0/16"), .gateway = Ip("10.0.0.7"), .link_index = 2});
  host.routes.push_back({.destination = Prefix("10.9.0.0/16"), .link_index = 3, .metric = 50});
  host.routes.push_back({.destination = Prefix("10.9.1.0/24"), .link_index = 4, .protocol = kRouteProtocol});
  EXPECT_EQ(RouteTo(host, Ip("10.9.1.1"))->gateway, Ip("10.0.0.7"));
  EXPECT_EQ(RouteTo(host, Ip("8.8.8.8"))->destination, Prefix("0.0.0.0/0"));
  host.routes.clear();
  EXPECT_EQ(RouteTo(host, Ip("8.8.8.8")), nullptr);
}

TEST(Aggregate, MakesFewPrefixes) {
  EXPECT_EQ(Aggregate({}), std::vector<IpPrefix>());
  std::vector<IpPrefix> many;
  for (int i = 0; i < 1000; ++i) {
    many.push_back(Prefix("10." + std::to_string(i / 256) + "." + std::to_string(i % 256) + ".0/24"));
  }
  std::vector<IpPrefix> few = Aggregate(many);
  EXPECT_EQ(few, Prefixes({"10.0.0.0/15", "10.2.0.0/16", "10.3.0.0/17", "10.3.128.0/18", "10.3.192.0/19",
                           "10.3.224.0/21"}));
  EXPECT_EQ(Aggregate(Prefixes({"fd00::/64", "10.0.1.0/24", "10.0.0.0/16", "fd00:0:0:1::/64"})),
            Prefixes({"10.0.0.0/16", "fd00::/63"}));
  EXPECT_EQ(Aggregate(Prefixes({"10.0.1.0/24", "10.0.2.0/24"})), Prefixes({"10.0.1.0/24", "10.0.2.0/24"}));
}

TEST(Compare, TouchesWhatDiffersAndNothingElse) {
  NodeMap nodes = Map({Node("a", {"10.244.1.0/24"}, {"10.0.0.1"}), Node("b", {"10.244.2.0/24"}, {"10.9.0.2"}),
                       Node("c", {"10.244.3.0/24"}, {"10.0.0.3"})});
  Plan plan = *MakePlan(For(), nodes, Host());
  Difference all = Compare(plan, 9, Host().routes, {}, {});
  EXPECT_EQ(all.replace_routes.size(), 2u);
  EXPECT_EQ(all.replace_neighbors.size(), 1u);
  EXPECT_EQ(all.replace_forwarding.size(), 1u);
  EXPECT_THAT(all.delete_routes, IsEmpty());

  // In the form of a listing: with scope and more.
  std::vector<netlink::Route> routes = Host().routes;
  for (netlink::Route route : all.replace_routes) {
    route.scope = 0;
    routes.push_back(route);
  }
  Difference none = Compare(plan, 9, routes, all.replace_neighbors, all.replace_forwarding);
  EXPECT_TRUE(none.replace_routes.empty() && none.delete_routes.empty() && none.replace_neighbors.empty() &&
              none.delete_neighbors.empty() && none.replace_forwarding.empty() &&
              none.delete_forwarding.empty());

  // b is gone.
  nodes.erase("b");
  plan = *MakePlan(For(), nodes, Host());
  Difference gone = Compare(plan, 9, routes, all.replace_neighbors, all.replace_forwarding);
  EXPECT_THAT(gone.replace_routes, IsEmpty());
  ASSERT_EQ(gone.delete_routes.size(), 1u);
  EXPECT_EQ(gone.delete_routes[0].destination, Prefix("10.244.2.0/24"));
  EXPECT_EQ(gone.delete_neighbors.size(), 1u);
  EXPECT_EQ(gone.delete_forwarding.size(), 1u);
}

TEST(Compare, AnotherGatewayReplacesAnotherMetricGoes) {
  NodeMap nodes =
      Map({Node("a", {"10.244.1.0/24"}, {"10.0.0.1"}), Node("b", {"10.244.2.0/24"}, {"10.0.0.2"})});
  Plan plan = *MakePlan(For(), nodes, Host());
  std::vector<netlink::Route> routes = Host().routes;
  netlink::Route moved = plan.routes[0];
  moved.gateway = Ip("10.0.0.9");
  netlink::Route stray = plan.routes[0];
  stray.metric = 7;
  routes.push_back(moved);
  routes.push_back(stray);
  Difference d = Compare(plan, 0, routes, {}, {});
  ASSERT_EQ(d.replace_routes.size(), 1u);
  EXPECT_EQ(d.replace_routes[0].gateway, Ip("10.0.0.2"));
  ASSERT_EQ(d.delete_routes.size(), 1u);
  EXPECT_EQ(d.delete_routes[0].metric, 7);
}

TEST(Masquerade, IsOneTransactionAndStable) {
  nft::FakeKernel kernel;
  auto own = Prefixes({"10.244.1.0/24", "fd44:1::/64"});
  nft::Ruleset rules = MasqueradeRules(own, Prefixes({"10.244.0.0/16"}));
  EXPECT_TRUE(*EnsureMasquerade(kernel, rules));
  EXPECT_FALSE(*EnsureMasquerade(kernel, rules));
  EXPECT_EQ(kernel.applied(), 1);
  std::string text = nft::ToText(rules);
  EXPECT_THAT(text, HasSubstr("leaving6"));
  EXPECT_TRUE(*EnsureMasquerade(kernel, MasqueradeRules(Prefixes({"10.244.1.0/24"}), {})));
  EXPECT_THAT(nft::ToText(**kernel.Read(rules.table)), Not(HasSubstr("leaving6")));
  EXPECT_TRUE(RemoveMasquerade(kernel));
  EXPECT_TRUE(RemoveMasquerade(kernel));
  EXPECT_FALSE(*kernel.Read(rules.table));
}

TEST(Conflist, IsWrittenOnceAndWhole) {
  char dir[] = "/tmp/kube-cni-test-XXXXXX";
  ASSERT_NE(::mkdtemp(dir), nullptr);
  Config config = For();
  config.conf_dir = std::string(dir) + "/net.d";
  config.data_dir = "/run/pods";
  NodeMap nodes = Map({Node("a", {"10.244.1.0/24", "fd44:1::/64"}, {"10.0.0.1"})});
  Plan plan = *MakePlan(config, nodes, Host());
  std::string text = ConflistText(config, plan);
  EXPECT_TRUE(*WriteConflist(config, text));
  EXPECT_FALSE(*WriteConflist(config, text));
  EXPECT_EQ(*ReadFile(config.ConflistPath()), R"({
  "cniVersion": "1.0.0",
  "name": "keelson",
  "plugins": [
    {
      "type": "bridge",
      "bridge": "keelson0",
      "isDefaultGateway": true,
      "hairpinMode": true,
      "ipMasq": false,
      "mtu": 1500,
      "ipam": {
        "type": "host-local",
        "dataDir": "/run/pods",
        "ranges": [
          [
            {
              "subnet": "10.244.1.0/24"
            }
          ],
          [
            {
              "subnet": "fd44:1::/64"
            }
          ]
        ]
      }
    },
    {
      "type": "keelson-policy"
    },
    {
      "type": "portmap",
      "capabilities": {
        "portMappings": true
      }
    },
    {
      "type": "bandwidth",
      "capabilities": {
        "bandwidth": true
      }
    }
  ]
}
)");
  EXPECT_THAT(*ListDir(config.conf_dir), ElementsAre("10-keelson.conflist"));
  // Only installed plugins are chained.
  config.bin_dir = dir;
  ASSERT_TRUE(WriteFile(config.bin_dir + "/portmap", ""));
  text = ConflistText(config, plan);
  EXPECT_THAT(text, HasSubstr("portmap"));
  EXPECT_THAT(text, Not(HasSubstr("bandwidth")));
  // But without the policies' plugin no pod may start.
  EXPECT_THAT(text, HasSubstr("keelson-policy"));
  config.network_policy = false;
  EXPECT_THAT(ConflistText(config, plan), Not(HasSubstr("keelson-policy")));
  ASSERT_TRUE(RemoveTree(dir));
}

}  // namespace
}  // namespace keelson::cni::agent
