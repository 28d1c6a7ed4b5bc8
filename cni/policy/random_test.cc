// Random clusters: the rules of a plan decide about every packet as the API's text does.
#include <gtest/gtest.h>

#include <random>

#include "cni/policy/testing/traced.h"

namespace keelson::cni::policy {
namespace {

class Dice {
 public:
  explicit Dice(unsigned seed) : random_(seed) {}
  int Below(int n) { return std::uniform_int_distribution<int>(0, n - 1)(random_); }
  bool Odds(int of_ten) { return Below(10) < of_ten; }
  template <typename T>
  T Of(std::initializer_list<T> choices) {
    return *(choices.begin() + Below(static_cast<int>(choices.size())));
  }

 private:
  std::minstd_rand random_;
};

IpAddress Address(bool v4, int node, int number) {
  std::string n = std::to_string(node), i = std::to_string(number);
  return *IpAddress::Parse(v4 ? "10.244." + n + "." + i : "fd44:" + n + "::" + i);
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

Rule RandomRule(Dice& dice) {
  Rule out;
  for (int i = dice.Below(4); i > 0; --i) out.ports.push_back(RandomPort(dice));
  for (int i = dice.Below(4); i > 0; --i) out.peers.push_back(RandomPeer(dice));
  return out;
}

Cluster RandomCluster(Dice& dice) {
  Cluster out;
  for (const char* ns : {"x", "y", "x-2"}) out.namespaces[ns] = RandomLabels(dice);
  for (int i = 0; i < 10; ++i) {
    Pod pod{.ns = dice.Of<const char*>({"x", "y", "x-2"}), .name = "p" + std::to_string(i)};
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
    pod.created = i;
    if (pod.host_network) {
      pod.addresses = {*IpAddress::Parse("192.0.2.7"), *IpAddress::Parse("2001:db8::7")};
    } else {
      // The addresses of a finished pod may have another one by now.
      int number = pod.finished ? dice.Below(10) + 1 : i + 1;
      pod.addresses = {Address(true, node, number), Address(false, node, number)};
    }
    out.pods[pod.ns + "/" + pod.name] = pod;
  }
  for (int i = dice.Below(6); i > 0; --i) {
    Policy policy{.ns = dice.Of<const char*>({"x", "y", "x-2"}), .name = "n" + std::to_string(i)};
    policy.pods = RandomSelector(dice);
    policy.isolates_ingress = dice.Odds(7);
    policy.isolates_egress = dice.Odds(6);
    for (int n = dice.Below(4); n > 0; --n) policy.ingress.push_back(RandomRule(dice));
    for (int n = dice.Below(4); n > 0; --n) policy.egress.push_back(RandomRule(dice));
    out.policies[policy.ns + "/" + policy.name] = policy;
  }
  return out;
}

std::string Text(const Packet& packet) {
  return packet.source.ToString() + " to " + packet.destination.ToString() + " protocol " +
         std::to_string(packet.protocol) + " port " + std::to_string(packet.port);
}

const Node kNode = {"n1", {*IpPrefix::Parse("10.244.1.0/24"), *IpPrefix::Parse("fd44:1::/64")}};

Attachments Attach(const Cluster& cluster) {
  Attachments out;
  for (const auto& [address, uid] : Unattached(cluster, kNode.name, kNode.pod_cidrs, {})) {
    out[address] = {.uid = uid, .epoch = 1};
  }
  return out;
}

TEST(RandomClusters, TheRulesDecideAsTheApiSays) {
  size_t passed = 0, dropped = 0;
  for (unsigned seed = 1; seed <= 3000; ++seed) {
    Dice dice(seed);
    Cluster cluster = RandomCluster(dice);
    Attachments attachments = Attach(cluster);
    TracedPlan plan(MakePlan(cluster, kNode, attachments));
    for (int i = 0; i < 40; ++i) {
      bool v4 = dice.Odds(5);
      auto any = [&]() -> IpAddress {
        if (dice.Odds(1)) return *IpAddress::Parse(v4 ? "192.0.2.7" : "2001:db8::7");
        if (dice.Odds(1)) return *IpAddress::Parse(v4 ? "192.0.2.8" : "2001:db8::8");
        return Address(v4, dice.Of({1, 1, 2}), dice.Below(10) + 1);
      };
      Packet packet{any(), any(), dice.Of<uint8_t>({6, 6, 17, 132, 1}),
                    dice.Of<uint16_t>({80, 81, 8080, 8001, 9})};
      // Addresses of this node that no pod has are dropped, whatever policies say.
      bool known = true;
      for (const IpAddress& address : {packet.source, packet.destination}) {
        bool here = kNode.pod_cidrs[0].Contains(address) || kNode.pod_cidrs[1].Contains(address);
        known = known && (!here || attachments.contains(address));
      }
      bool expected = known && Permitted(cluster, "n1", packet);
      ASSERT_EQ(plan.Passes(packet), expected) << "seed " << seed << ": " << Text(packet);
      ++(expected ? passed : dropped);
    }
  }
  // Both happen often, so the comparison means something.
  EXPECT_GT(passed, 10000u);
  EXPECT_GT(dropped, 10000u);
}

TEST(RandomClusters, OnePodMoreChangesElementsOnly) {
  for (unsigned seed = 1; seed <= 200; ++seed) {
    Dice dice(seed);
    Cluster cluster = RandomCluster(dice);
    Attachments attachments = Attach(cluster);
    nft::Ruleset before = MakePlan(cluster, kNode, attachments).rules;
    Pod more = cluster.pods.begin()->second;
    more.name = "more";
    more.uid = "uid-more";
    more.node = "n2";
    more.host_network = more.finished = false;
    more.addresses = {Address(true, 2, 77), Address(false, 2, 77)};
    cluster.pods["x/more"] = more;
    nft::Ruleset after = MakePlan(cluster, kNode, attachments).rules;
    ASSERT_EQ(before.chains.size(), after.chains.size()) << seed;
    for (const auto& [name, contents] : after.chains) {
      ASSERT_TRUE(before.chains.contains(name)) << seed;
      ASSERT_EQ(before.chains.at(name).rules.size(), contents.rules.size()) << seed;
    }
    ASSERT_EQ(before.sets.size(), after.sets.size()) << seed;
  }
}

}  // namespace
}  // namespace keelson::cni::policy
