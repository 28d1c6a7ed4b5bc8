// The pure halves of encryption and BGP.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "cni/agent/bird.h"
#include "cni/agent/ipsec_plan.h"
#include "cni/agent/wireguard.h"
#include "lib/base/base64.h"

namespace keelson::cni::agent {
namespace {

using netlink::XfrmPolicy;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using Direction = XfrmPolicy::Direction;

IpPrefix Prefix(std::string_view text) { return *IpPrefix::Parse(text); }
IpAddress Ip(std::string_view text) { return *IpAddress::Parse(text); }

NodeInfo Node(const std::string& name, int number) {
  std::string n = std::to_string(number);
  NodeInfo node;
  node.name = name;
  node.pod_cidrs = {Prefix("10.244." + n + ".0/24"), Prefix("fd44:" + n + "::/64")};
  node.addresses = {Ip("10.0.0." + n), Ip("fd10::" + n)};
  return node;
}

struct Side {
  Config config;
  Plan plan;
};

// One node's view of a cluster of a (1), b (2) and c (3) on one link.
Side ViewOf(const std::string& name, int number, Encryption encryption, NodeMap& nodes) {
  Side out;
  nodes = {{"a", Node("a", 1)}, {"b", Node("b", 2)}, {"c", Node("c", 3)}};
  out.config.node_name = name;
  out.config.encryption = encryption;
  out.config.cluster_cidrs = {Prefix("10.244.0.0/16"), Prefix("fd44::/16")};
  HostState host;
  std::string n = std::to_string(number);
  host.links = {{.index = 2, .name = "eth0", .mtu = 1500, .up = true}};
  host.addresses = {{.link_index = 2, .prefix = Prefix("10.0.0." + n + "/24")}};
  host.routes = {{.destination = Prefix("10.0.0.0/24"), .link_index = 2},
                 {.destination = Prefix("fd10::/64"), .link_index = 2}};
  out.plan = *MakePlan(out.config, nodes, host);
  return out;
}

const std::vector<std::string> kSecrets = {std::string(40, 'x'), std::string(40, 'y')};

std::map<uint32_t, std::string> KeysTo(const IpsecPlan& plan, const IpAddress& to, const IpAddress& from) {
  std::map<uint32_t, std::string> out;
  for (const auto& state : plan.states) {
    if (state.destination == to && state.source == from) out[state.spi] = state.key;
  }
  return out;
}

TEST(IpsecPlan, BothEndsDeriveTheSameAndNobodyElse) {
  NodeMap nodes;
  Side a = ViewOf("a", 1, Encryption::kIpsec, nodes), b = ViewOf("b", 2, Encryption::kIpsec, nodes);
  IpsecPlan at_a = *MakeIpsecPlan(a.config, a.plan, nodes, {kSecrets[0]}, 1000);
  // b's clock is an hour behind, and its first secret is another one.
  IpsecPlan at_b = *MakeIpsecPlan(b.config, b.plan, nodes, {kSecrets[1], kSecrets[0]}, 999);
  auto sent = KeysTo(at_a, Ip("10.0.0.2"), Ip("10.0.0.1"));
  ASSERT_EQ(sent.size(), 1u);
  auto taken = KeysTo(at_b, Ip("10.0.0.2"), Ip("10.0.0.1"));
  EXPECT_EQ(taken.size(), 6u);
  EXPECT_EQ(taken[sent.begin()->first], sent.begin()->second);
  EXPECT_EQ(sent.begin()->second.size(), 36u);
  // Two hours apart is too far.
  IpsecPlan late = *MakeIpsecPlan(b.config, b.plan, nodes, {kSecrets[0]}, 1002);
  EXPECT_FALSE(KeysTo(late, Ip("10.0.0.2"), Ip("10.0.0.1")).contains(sent.begin()->first));

  std::set<std::string> keys;
  std::set<std::pair<IpAddress, uint32_t>> ids;
  for (const auto& state : at_a.states) {
    keys.insert(state.key);
    ids.insert({state.destination, state.spi});
    EXPECT_GE(state.spi, 256u);
  }
  EXPECT_EQ(keys.size(), at_a.states.size());
  EXPECT_EQ(ids.size(), at_a.states.size());
}

TEST(IpsecPlan, PoliciesMirrorEachOther) {
  NodeMap nodes;
  Side a = ViewOf("a", 1, Encryption::kIpsec, nodes), b = ViewOf("b", 2, Encryption::kIpsec, nodes);
  IpsecPlan at_a = *MakeIpsecPlan(a.config, a.plan, nodes, kSecrets, 1000);
  IpsecPlan at_b = *MakeIpsecPlan(b.config, b.plan, nodes, kSecrets, 1000);
  auto find = [](const IpsecPlan& plan, Direction direction, const char* from,
                 const char* to) -> const XfrmPolicy* {
    for (const XfrmPolicy& p : plan.policies) {
      if (p.direction == direction && p.source == Prefix(from) && p.destination == Prefix(to)) return &p;
    }
    return nullptr;
  };
  const struct {
    const char *from, *to;
    Direction arrives;
  } flows[] = {
      {"10.244.1.0/24", "10.244.2.0/24", Direction::kForward},
      {"fd44:1::/64", "fd44:2::/64", Direction::kForward},
      {"10.0.0.1/32", "10.244.2.0/24", Direction::kForward},
      {"10.244.1.0/24", "10.0.0.2/32", Direction::kIn},
      {"fd10::1/128", "fd44:2::/64", Direction::kForward},
      {"fd44:1::/64", "fd10::2/128", Direction::kIn},
  };
  for (const auto& flow : flows) {
    SCOPED_TRACE(std::string(flow.from) + " to " + flow.to);
    const XfrmPolicy* out = find(at_a, Direction::kOut, flow.from, flow.to);
    const XfrmPolicy* in = find(at_b, flow.arrives, flow.from, flow.to);
    ASSERT_TRUE(out && in);
    EXPECT_EQ(out->tunnel->destination, Ip("10.0.0.2"));
    EXPECT_NE(out->tunnel->spi, 0u);
    EXPECT_EQ(in->tunnel->source, Ip("10.0.0.1"));
    EXPECT_EQ(in->tunnel->spi, 0u);
  }
  const XfrmPolicy* own = find(at_a, Direction::kOut, "0.0.0.0/0", "10.244.1.0/24");
  const XfrmPolicy* rest = find(at_a, Direction::kOut, "0.0.0.0/0", "10.244.0.0/16");
  ASSERT_TRUE(own && rest);
  EXPECT_TRUE(!own->tunnel && !own->block && rest->block);
  EXPECT_LT(own->priority, rest->priority);
  EXPECT_EQ(find(at_a, Direction::kOut, "10.244.1.0/24", "10.244.1.0/24"), nullptr);
}

TEST(IpsecSecrets, OneALine) {
  std::string x(40, 'x'), y(32, 'y');
  EXPECT_THAT(*ParseIpsecSecrets("# made by hand\n" + x + "\r\n\n" + y), ElementsAre(x, y));
  for (const char* bad : {"", "\n# nothing\n", "short\n"}) {
    EXPECT_EQ(ParseIpsecSecrets(bad).error().code(), Code::kInvalid) << bad;
  }
}

TEST(Wireguard, PeersFollowThePlan) {
  NodeMap nodes;
  Side a = ViewOf("a", 1, Encryption::kWireguard, nodes);
  std::string key_b(32, 'b'), key_c(32, 'c');
  for (PeerPlan& peer : a.plan.peers) peer.wireguard_key = EncodeBase64(peer.name == "b" ? key_b : key_c);
  auto all = CompareWireguard({}, a.plan, 51871);
  ASSERT_EQ(all.set.size(), 2u);
  EXPECT_EQ(all.set[0].public_key, key_b);
  EXPECT_EQ(all.set[0].endpoint, Ip("10.0.0.2"));
  EXPECT_THAT(all.set[0].allowed, ElementsAre(Prefix("10.244.2.0/24"), Prefix("fd44:2::/64")));
  auto none = CompareWireguard(all.set, a.plan, 51871);
  EXPECT_TRUE(none.set.empty() && none.removed.empty());
  // c gets a new key; a peer with an invalid key is left out.
  for (PeerPlan& peer : a.plan.peers) {
    peer.wireguard_key = peer.name == "c" ? EncodeBase64(std::string(32, 'd')) : "x";
  }
  auto change = CompareWireguard(all.set, a.plan, 51871);
  EXPECT_EQ(change.set.size(), 1u);
  EXPECT_THAT(change.removed, ElementsAre(key_b, key_c));
}

TEST(Bird, ConfigurationOfBothFamilies) {
  NodeMap nodes;
  Side a = ViewOf("a", 1, Encryption::kNone, nodes);
  a.config.bgp = {.bird_config = "/x", .bird_socket = "/y", .as_number = 64512};
  a.config.bgp.peers = {{Ip("10.0.0.254"), 64512}, {Ip("fd10::fe"), 4200000000}};
  std::string text = BirdConfigText(a.config, a.plan, nodes.at("a"));
  EXPECT_THAT(text, HasSubstr("router id 10.0.0.1;"));
  EXPECT_THAT(text, HasSubstr("route 10.244.1.0/24 unreachable;"));
  EXPECT_THAT(text, HasSubstr("route fd44:1::/64 unreachable;"));
  EXPECT_THAT(text, HasSubstr("local 10.0.0.1 as 64512;\n  neighbor 10.0.0.254 as 64512;\n  ipv4 {"));
  EXPECT_THAT(text, HasSubstr("local fd10::1 as 64512;\n  neighbor fd10::fe as 4200000000;\n  ipv6 {"));
  EXPECT_THAT(text, HasSubstr("learn;\n  ipv6 {\n    import all;"));
  EXPECT_THAT(text, HasSubstr("net ~ [ 10.244.0.0/16+ ]"));
  a.config.cluster_cidrs.clear();
  a.plan.pod_cidrs.pop_back();
  text = BirdConfigText(a.config, a.plan, nodes.at("a"));
  EXPECT_THAT(text, HasSubstr("net != 0.0.0.0/0"));
  EXPECT_THAT(text, Not(HasSubstr("keelson_kernel6")));
}

}  // namespace
}  // namespace keelson::cni::agent
