#include "cni/policy/testing/random_cluster.h"

namespace keelson::cni::policy {

IpAddress Address(bool v4, int node, int number) {
  // 10.244.NODE.NUMBER, fd44:NODE::NUMBER
  std::string bytes = v4 ? std::string("\x0a\xf4", 2) : std::string("\xfd\x44", 2) + std::string(14, '\0');
  if (v4) return IpAddress::FromBytes(bytes + static_cast<char>(node) + static_cast<char>(number));
  bytes[3] = static_cast<char>(node);
  bytes[15] = static_cast<char>(number);
  return IpAddress::FromBytes(bytes);
}

Labels RandomLabels(Dice& dice) {
  Labels out;
  for (const char* key : {"app", "tier"}) {
    if (dice.Odds(7)) out[key] = dice.Of<const char*>({"a", "b", "c"});
  }
  return out;
}

Selector RandomSelector(Dice& dice) {
  using Op = Selector::Op;
  Selector out;
  for (int i = dice.Below(3); i > 0; --i) {
    Selector::Requirement wanted{
        .key = dice.Of<const char*>({"app", "tier"}),
        .op = dice.Of({Op::kIn, Op::kIn, Op::kNotIn, Op::kExists, Op::kDoesNotExist})};
    if (wanted.op == Op::kIn || wanted.op == Op::kNotIn) {
      wanted.values.push_back(dice.Of<const char*>({"a", "b"}));
      if (dice.Odds(3)) wanted.values.push_back("c");
    }
    out.requirements.push_back(std::move(wanted));
  }
  return out;
}

namespace {

Port RandomPort(Dice& dice) {
  Port out{.protocol = dice.Of<uint8_t>({6, 6, 17, 132})};
  switch (dice.Below(4)) {
    case 0:
      out.name = dice.Of<const char*>({"http", "dns"});
      break;
    case 1:
      out.first = out.last = dice.Of<uint16_t>({80, 81, 8080});
      break;
    case 2:
      out.first = dice.Of<uint16_t>({79, 80, 8000});
      out.last = static_cast<uint16_t>(out.first + dice.Below(200));
      break;
    default:  // every port of the protocol
      break;
  }
  return out;
}

Peer RandomPeer(Dice& dice) {
  Peer out;
  if (dice.Odds(3)) {
    bool v4 = dice.Odds(5);
    auto prefix = [&](std::initializer_list<const char*> four, std::initializer_list<const char*> six) {
      return *IpPrefix::Parse(v4 ? dice.Of(four) : dice.Of(six));
    };
    out.block = Block{.cidr = prefix({"0.0.0.0/0", "10.244.0.0/16", "10.244.1.0/28", "192.0.2.0/24"},
                                     {"::/0", "fd44::/16", "fd44:1::/124", "2001:db8::/32"})};
    for (int i = dice.Below(3); i > 0; --i) {
      out.block->except.push_back(prefix({"10.244.1.0/29", "10.244.0.0/16", "192.0.2.7/32", "10.244.1.2/32"},
                                         {"fd44:1::/125", "fd44::/16", "2001:db8::7/128", "fd44:1::2/128"}));
    }
    return out;
  }
  if (dice.Odds(6)) out.pods = RandomSelector(dice);
  if (dice.Odds(5) || !out.pods) out.namespaces = RandomSelector(dice);
  return out;
}

// Only where the rule names no port, as the API wants it.
void AddDomains(Dice& dice, Rule& rule) {
  for (const Port& port : rule.ports) {
    if (!port.name.empty()) return;
  }
  for (int n = dice.Odds(8) ? dice.Below(3) : 0; n >= 0; --n) {
    rule.peers.push_back(
        {.domain = dice.Of<const char*>({"example.com", "www.example.com", "a.b.example.com", "*.example.com",
                                         "*.b.example.com", "*.example.org"})});
  }
}

// Only where the rule names no port, as the API wants it.
void AddNodes(Dice& dice, Rule& rule) {
  for (const Port& port : rule.ports) {
    if (!port.name.empty()) return;
  }
  rule.peers.push_back({.nodes = RandomSelector(dice)});
}

}  // namespace

Rule RandomRule(Dice& dice) {
  Rule out;
  for (int i = dice.Below(4); i > 0; --i) out.ports.push_back(RandomPort(dice));
  for (int i = dice.Below(4); i > 0; --i) out.peers.push_back(RandomPeer(dice));
  return out;
}

Pod RandomPod(Dice& dice, int number) {
  Pod pod{.ns = dice.Of<const char*>({"x", "y", "x-2"}), .name = "p" + std::to_string(number)};
  int node = dice.Of({1, 1, 2});
  pod.uid = "uid-" + pod.name;
  pod.node = "n" + std::to_string(node);
  pod.labels = RandomLabels(dice);
  for (int n = dice.Below(3); n > 0; --n) {
    pod.ports.push_back({.name = dice.Of<const char*>({"http", "dns"}),
                         .protocol = dice.Of<uint8_t>({6, 17}),
                         .port = dice.Of<uint16_t>({80, 81, 8080})});
  }
  pod.host_network = dice.Odds(1);
  pod.finished = dice.Odds(1);
  pod.created = number;
  if (pod.host_network) {
    pod.addresses = {*IpAddress::Parse("192.0.2.7"), *IpAddress::Parse("2001:db8::7")};
  } else {
    // The addresses of a finished pod may have another one by now.
    int own = pod.finished ? dice.Below(10) + 1 : number + 1;
    pod.addresses = {Address(true, node, own), Address(false, node, own)};
  }
  return pod;
}

Policy RandomPolicy(Dice& dice, int number) {
  Policy policy{.ns = dice.Of<const char*>({"x", "y", "x-2"}), .name = "n" + std::to_string(number)};
  policy.pods = RandomSelector(dice);
  policy.isolates_ingress = dice.Odds(7);
  policy.isolates_egress = dice.Odds(6);
  for (int n = dice.Below(4); n > 0; --n) policy.ingress.push_back(RandomRule(dice));
  for (int n = dice.Below(4); n > 0; --n) policy.egress.push_back(RandomRule(dice));
  return policy;
}

ResolvedNames RandomNames(Dice& dice) {
  ResolvedNames out;
  for (const char* name : {"example.com", "www.example.com", "b.example.com", "a.b.example.com",
                           "www.example.org", "notexample.com"}) {
    for (int n = dice.Below(3); n > 0; --n) {
      const bool v4 = dice.Odds(5);
      out[name].push_back(dice.Odds(6) ? *IpAddress::Parse(v4 ? dice.Of({"192.0.2.7", "192.0.2.8"})
                                                              : dice.Of({"2001:db8::7", "2001:db8::8"}))
                                       : Address(v4, dice.Of({1, 2}), dice.Below(10) + 1));
    }
  }
  return out;
}

ClusterPolicy RandomClusterPolicy(Dice& dice, int number) {
  using Action = TierRule::Action;
  ClusterPolicy out{.name = "c" + std::to_string(number), .namespaces = {}, .pods = {}};
  out.tier = dice.Of({ClusterPolicy::Tier::kAdmin, ClusterPolicy::Tier::kBaseline});
  out.priority = dice.Below(3);
  out.namespaces = RandomSelector(dice);
  if (dice.Odds(5)) out.pods = RandomSelector(dice);
  for (std::vector<TierRule>* rules : {&out.ingress, &out.egress}) {
    for (int n = dice.Below(4); n > 0; --n) {
      Rule rule = RandomRule(dice);
      // Peers without a namespace selector are those of a namespace, which this policy has not.
      for (Peer& peer : rule.peers) {
        if (!peer.block && !peer.namespaces) peer.namespaces = RandomSelector(dice);
      }
      const Action action = dice.Of({Action::kAccept, Action::kDeny, Action::kPass});
      const bool names = rules == &out.egress && action == Action::kAccept && dice.Odds(7);
      if (names && dice.Odds(7)) rule = {};
      if (names) AddDomains(dice, rule);
      if (rules == &out.egress && dice.Odds(3)) AddNodes(dice, rule);
      rules->push_back({.action = action, .peers = std::move(rule.peers), .ports = std::move(rule.ports)});
      // As those who list names do: everything else is denied.
      if (names && dice.Odds(7)) rules->push_back({.action = Action::kDeny});
    }
  }
  return out;
}

// The addresses of the host's network that packets and pods have, sometimes those of the other node too.
ClusterNodes RandomNodes(Dice& dice) {
  ClusterNodes out;
  out["n1"] = {RandomLabels(dice), {*IpAddress::Parse("192.0.2.7"), *IpAddress::Parse("2001:db8::7")}};
  if (dice.Odds(8)) {
    const bool same = dice.Odds(2);
    out["n2"] = {RandomLabels(dice),
                 {*IpAddress::Parse(same ? "192.0.2.7" : "192.0.2.8"), *IpAddress::Parse("2001:db8::8")}};
  }
  return out;
}

Cluster RandomCluster(Dice& dice) {
  Cluster out;
  out.nodes = RandomNodes(dice);
  for (const char* ns : {"x", "y", "x-2"}) out.namespaces[ns] = RandomLabels(dice);
  for (int i = 0; i < 10; ++i) {
    Pod pod = RandomPod(dice, i);
    out.pods[pod.ns + "/" + pod.name] = pod;
  }
  for (int i = dice.Below(6); i > 0; --i) {
    Policy policy = RandomPolicy(dice, i);
    out.policies[policy.ns + "/" + policy.name] = policy;
  }
  if (dice.Odds(6)) return out;
  for (int i = dice.Below(4); i > 0; --i) {
    ClusterPolicy policy = RandomClusterPolicy(dice, i);
    out.cluster_policies[policy.name] = policy;
  }
  return out;
}

}  // namespace keelson::cni::policy
