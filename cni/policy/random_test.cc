// Random clusters: the rules of a plan decide about every packet as the API's text does.
#include <gtest/gtest.h>

#include <cstdlib>

#include "cni/policy/testing/random_cluster.h"
#include "cni/policy/testing/traced.h"

namespace keelson::cni::policy {
namespace {

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

// KEELSON_RANDOM_CLUSTERS: another number of clusters.
unsigned ClusterCount() {
  const char* text = std::getenv("KEELSON_RANDOM_CLUSTERS");
  return text ? static_cast<unsigned>(std::strtoul(text, nullptr, 10)) : 10000;
}

TEST(RandomClusters, TheRulesDecideAsTheApiSays) {
  size_t passed = 0, dropped = 0, by_name = 0, node_passed = 0, node_dropped = 0;
  for (unsigned seed = 1; seed <= ClusterCount(); ++seed) {
    Dice dice(seed);
    Cluster cluster = RandomCluster(dice);
    Attachments attachments = Attach(cluster);
    const ResolvedNames names = RandomNames(dice);
    TracedPlan plan(MakePlan(cluster, kNode, attachments), names);
    for (int i = 0; i < 40; ++i) {
      bool v4 = dice.Odds(5);
      auto any = [&]() -> IpAddress {
        if (dice.Odds(1)) return *IpAddress::Parse(v4 ? "192.0.2.7" : "2001:db8::7");
        if (dice.Odds(1)) return *IpAddress::Parse(v4 ? "192.0.2.8" : "2001:db8::8");
        return Address(v4, dice.Of({1, 1, 2}), dice.Below(10) + 1);
      };
      Packet packet{any(), any(), dice.Of<uint8_t>({6, 6, 17, 132, 1}),
                    dice.Of<uint16_t>({80, 81, 8080, 8001, 9})};
      if (!names.empty() && dice.Odds(2)) {
        const std::vector<IpAddress>& given =
            std::next(names.begin(), dice.Below(static_cast<int>(names.size())))->second;
        packet.destination = given[static_cast<size_t>(dice.Below(static_cast<int>(given.size())))];
        packet.source = Address(packet.destination.is_v4(), 1, dice.Below(10) + 1);
      }
      // Addresses of this node that no pod has are dropped, whatever policies say.
      bool known = true;
      for (const IpAddress& address : {packet.source, packet.destination}) {
        bool here = kNode.pod_cidrs[0].Contains(address) || kNode.pod_cidrs[1].Contains(address);
        known = known && (!here || attachments.contains(address));
      }
      bool expected = known && Permitted(cluster, names, "n1", packet);
      ASSERT_EQ(plan.Passes(packet), expected) << "seed " << seed << ": " << Text(packet);
      ++(expected ? passed : dropped);
      if (!cluster.cluster_policies.empty() && expected && !Permitted(cluster, {}, "n1", packet)) ++by_name;
      Packet to_node = packet;
      to_node.destination = *IpAddress::Parse(packet.source.is_v4() ? "192.0.2.7" : "2001:db8::7");
      if (!attachments.contains(to_node.source)) continue;
      const bool reaches = PermittedToOwnNode(cluster, names, to_node);
      ASSERT_EQ(plan.ReachesNode(to_node), reaches) << "seed " << seed << ": " << Text(to_node);
      ++(reaches ? node_passed : node_dropped);
    }
  }
  // All happen often, so the comparison means something.
  EXPECT_GT(passed, 10000u);
  EXPECT_GT(dropped, 10000u);
  EXPECT_GT(node_passed, 10000u);
  EXPECT_GT(node_dropped, 1000u);
  EXPECT_GT(by_name, 100u) << "packets that only a domain name lets through";
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
