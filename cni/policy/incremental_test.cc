// Random events: what the incremental plan writes leads to the same table as planning all again.
#include "cni/policy/incremental.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cni/policy/testing/random_cluster.h"
#include "lib/dataplane/policy_sets.h"
#include "lib/nft/diff.h"
#include "lib/nft/testing/fake.h"
#include "lib/nft/text.h"

namespace keelson::cni::policy {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

const Node kNode = {"n1", {*IpPrefix::Parse("10.244.1.0/24"), *IpPrefix::Parse("fd44:1::/64")}};

// A node's agent without the API: a kernel, and events one by one.
class World {
 public:
  explicit World(unsigned seed) : dice_(seed) {
    Cluster cluster = RandomCluster(dice_);
    for (auto& [name, labels] : cluster.namespaces) plan_.PutNamespace(name, labels);
    for (auto& [key, pod] : cluster.pods) plan_.PutPod(key, pod);
    for (auto& [key, policy] : cluster.policies) plan_.PutPolicy(key, policy);
    for (auto& [name, policy] : cluster.cluster_policies) plan_.PutClusterPolicy(name, policy);
    plan_.SetNodes(cluster.nodes);
    plan_.SetNode(kNode);
    plan_.SetAttachments({});
    nft::Transaction all = nft::Diff(std::nullopt, MakePlan(plan_.cluster(), kNode, {}).rules);
    EXPECT_TRUE(kernel_.Apply(all));
    plan_.Forget();
  }

  void Event() {
    switch (dice_.Below(11)) {
      case 0:
      case 1:
      case 2: {
        Pod pod = RandomPod(dice_, dice_.Below(12));
        // Only names are unique: a pod may report the address of another one, or be a static pod's mirror.
        if (dice_.Odds(2)) pod.addresses = {Address(true, dice_.Of({1, 2}), dice_.Below(12) + 1)};
        if (dice_.Odds(1)) pod.addresses.clear();
        if (dice_.Odds(2)) pod.static_uid = "uid-p" + std::to_string(dice_.Below(12));
        pod.terminating = dice_.Odds(1);
        pod.created = dice_.Below(3);
        plan_.PutPod(pod.ns + "/" + pod.name, pod);
        break;
      }
      case 3:
        Erase(plan_.cluster().pods, [&](const std::string& key) { plan_.ErasePod(key); });
        break;
      case 4: {
        const char* name = dice_.Of<const char*>({"x", "y", "x-2"});
        dice_.Odds(2) ? plan_.EraseNamespace(name) : plan_.PutNamespace(name, RandomLabels(dice_));
        break;
      }
      case 5: {
        Policy policy = RandomPolicy(dice_, dice_.Below(6));
        plan_.PutPolicy(policy.ns + "/" + policy.name, policy);
        break;
      }
      case 6:
        Erase(plan_.cluster().policies, [&](const std::string& key) { plan_.ErasePolicy(key); });
        break;
      case 7: {
        ClusterPolicy policy = RandomClusterPolicy(dice_, dice_.Below(4));
        plan_.PutClusterPolicy(policy.name, policy);
        break;
      }
      case 8:
        Erase(plan_.cluster().cluster_policies,
              [&](const std::string& name) { plan_.EraseClusterPolicy(name); });
        break;
      case 9:
        plan_.SetNodes(RandomNodes(dice_));
        break;
      default:
        Attach();
    }
  }

  // Writes what has changed, sometimes after a plugin did, and compares with the whole plan.
  void Check() {
    Cluster cluster = plan_.cluster();
    Plan whole = MakePlan(cluster, kNode, plan_.attachments());
    EXPECT_EQ(plan_.Unattached(), Unattached(cluster, kNode.name, kNode.pod_cidrs, plan_.attachments()));
    EXPECT_EQ(plan_.ready(), whole.ready);
    EXPECT_EQ(plan_.isolated(), whole.isolated);
    std::optional<nft::Ruleset> foreign;
    if (dice_.Odds(5)) foreign = Foreign();
    Incremental::Changes changes = plan_.Take(foreign ? &*foreign : nullptr);
    for (const auto& [address, attachment] : changes.ready) {
      ready_.erase(address);
      if (attachment) ready_.emplace(address, *attachment);
    }
    EXPECT_EQ(ready_, whole.ready);
    Result<> applied = kernel_.Apply(changes.transaction);
    ASSERT_TRUE(applied) << applied.error().message();
    std::optional<nft::Ruleset> found = *kernel_.Read(whole.rules.table);
    nft::Transaction rest = nft::Diff(found, whole.rules);
    std::string text;
    for (const nft::Op& op : rest.ops()) text += nft::ToText(op) + "\n";
    EXPECT_EQ(text, "");
  }

 private:
  template <typename Objects, typename Call>
  void Erase(const Objects& objects, Call erase) {
    if (objects.empty()) return;
    erase(std::string(std::next(objects.begin(), dice_.Below(static_cast<int>(objects.size())))->first));
  }

  void Attach() {
    Attachments attachments = plan_.attachments();
    IpAddress address = Address(dice_.Odds(5), 1, dice_.Below(12) + 1);
    if (dice_.Odds(3)) {
      attachments.erase(address);
    } else {
      attachments[address] = {.uid = "uid-p" + std::to_string(dice_.Below(12)),
                              .epoch = static_cast<uint32_t>(dice_.Below(3))};
    }
    plan_.SetAttachments(attachments);
  }

  // Takes an address away as a plugin's DEL does; the sets that plugins write, as they are then.
  nft::Ruleset Foreign() {
    nft::Ruleset found = **kernel_.Read(dataplane::PolicyTable());
    auto& ready = found.sets.at(dataplane::ReadyPods(true).name);
    if (!ready.elements.empty()) {
      nft::Transaction t(dataplane::PolicyTable());
      t.DeleteElements(ready.set, {ready.elements.begin()->second});
      EXPECT_TRUE(kernel_.Apply(t));
      ready.elements.erase(ready.elements.begin());
    }
    found.chains.clear();
    std::erase_if(found.sets, [](const auto& set) {
      return set.first.rfind("attached", 0) != 0 && set.first.rfind("ready", 0) != 0;
    });
    return found;
  }

  Dice dice_;
  Incremental plan_;
  nft::FakeKernel kernel_;
  Attachments ready_;
};

TEST(Incremental, LeadsToTheTableOfTheWholePlan) {
  for (unsigned seed = 1; seed <= 60; ++seed) {
    World world(seed);
    Dice dice(seed + 1000);
    for (int i = 0; i < 60; ++i) {
      for (int n = dice.Below(4); n >= 0; --n) world.Event();
      world.Check();
      if (::testing::Test::HasFailure()) {
        FAIL() << "seed " << seed << ", step " << i;
      }
    }
  }
}

TEST(Incremental, AnotherNodeStartsOver) {
  Incremental plan;
  EXPECT_FALSE(plan.has_node());
  EXPECT_TRUE(plan.SetNode(kNode));
  EXPECT_FALSE(plan.SetNode(kNode));
  Node other = kNode;
  other.pod_cidrs.pop_back();
  EXPECT_TRUE(plan.SetNode(other));
}

TEST(Incremental, APodElsewhereChangesOneElementOfEachSet) {
  Incremental plan;
  plan.PutNamespace("x", {});
  Pod server{.ns = "x", .name = "server", .uid = "s", .node = "n1", .labels = {{"app", "server"}}};
  server.addresses = {*IpAddress::Parse("10.244.1.2")};
  plan.PutPod("x/server", server);
  auto is = [](const char* value) {
    return Selector{{{.key = "app", .op = Selector::Op::kIn, .values = {value}}}};
  };
  for (int i = 0; i < 100; ++i) {
    Policy policy{.ns = "x", .name = std::to_string(i), .pods = is("server"), .isolates_ingress = true};
    policy.ingress = {{.peers = {{.pods = is(i == 7 ? "client" : "other")}}}};
    plan.PutPolicy("x/" + policy.name, policy);
  }
  plan.SetNode(kNode);
  plan.SetAttachments({{server.addresses[0], {.uid = "s", .epoch = 1}}});
  plan.Forget();
  Pod client{.ns = "x", .name = "client", .uid = "c", .node = "n2", .labels = {{"app", "client"}}};
  client.addresses = {*IpAddress::Parse("10.244.2.2")};
  plan.PutPod("x/client", client);
  nft::Transaction changes = plan.Take().transaction;
  ASSERT_THAT(changes.ops(), SizeIs(1));
  EXPECT_THAT(std::get<nft::op::AddElements>(changes.ops()[0]).elements, SizeIs(1));
  // Labels that no selector names change nothing.
  client.labels["version"] = "2";
  plan.PutPod("x/client", client);
  EXPECT_THAT(plan.Take().transaction.ops(), IsEmpty());
}

}  // namespace
}  // namespace keelson::cni::policy
