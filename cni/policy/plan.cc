#include "cni/policy/plan.h"

#include <cstring>

#include "cni/policy/base_rules.h"
#include "cni/policy/chains.h"
#include "lib/dataplane/policy_sets.h"

namespace keelson::cni::policy {
namespace {

class Planner {
 public:
  Planner(const Cluster& cluster, const Node& node, const Attachments& attachments)
      : cluster_(cluster), node_(node), attachments_(attachments), members_(cluster, node.name, attachments) {
    plan_.rules = BaseRules(node);
  }

  Plan Run() {
    for (const auto& [address, attachment] : attachments_) {
      Put(dataplane::AttachedPods(address.is_v4()).name, ElementOf(address, attachment));
    }
    auto own = cluster_.nodes.find(node_.name);
    if (own != cluster_.nodes.end()) {
      for (const IpAddress& address : own->second.addresses) {
        Put(ThisNodeSet(address.is_v4()).name, {.key = nft::Key().Ip(address).bytes()});
      }
    }
    for (bool v4 : {true, false}) AddPods(v4);
    return std::move(plan_);
  }

 private:
  void Put(const std::string& set, nft::Element element) {
    std::string key = element.key;
    plan_.rules.sets.at(set).elements.insert_or_assign(std::move(key), std::move(element));
  }

  void AddPods(bool v4) {
    ClauseBuilder builder(v4);
    for (const auto& [address, pod] : members_.Attached()) {
      if (address.is_v4() != v4) continue;
      std::string key = nft::Key().Ip(address).bytes();
      Put(dataplane::ReadyPods(v4).name, {.key = key});
      plan_.ready.emplace(address, attachments_.at(address));
      bool isolated = false;
      for (Direction direction : {Direction::kEgress, Direction::kIngress}) {
        PodRules rules = RulesFor(*pod, direction, builder);
        if (!rules.Any()) continue;
        isolated = true;
        Enter(VerdictsName(direction, v4), key, rules, direction, v4);
        const PodRules own = direction == Direction::kEgress ? ToOwnNode(rules) : PodRules();
        if (own.Any()) Enter(ToThisNodeSet(v4).name, key, own, direction, v4);
      }
      if (!isolated) continue;
      ++plan_.isolated;
      Put(SelfSet(v4).name, {.key = nft::Key().Ip(address).Ip(address).bytes()});
    }
  }

  // `set`, the map of addresses to chains, leads the address `key` to the rules.
  void Enter(const std::string& set, const std::string& key, const PodRules& rules, Direction direction,
             bool v4) {
    std::vector<ChainSpec> chains = ChainsFor(rules, direction, v4);
    Put(set, {.key = key, .verdict = nft::Jump(chains.front().name)});
    for (const ChainSpec& chain : chains) AddChain(chain, direction, v4);
  }

  PodRules RulesFor(const Pod& pod, Direction direction, ClauseBuilder& builder) const {
    PodRules out;
    for (auto at = cluster_.policies.lower_bound(pod.ns + "/"); at != cluster_.policies.end(); ++at) {
      const Policy& policy = at->second;
      if (policy.ns != pod.ns) break;
      if (!policy.Isolates(direction) || !policy.pods.Matches(pod.labels)) continue;
      if (!out.permitted) out.permitted.emplace();
      builder.Add(policy, pod, direction, *out.permitted);
      out.isolated_by.push_back(at->first);
    }
    if (out.permitted) Normalize(*out.permitted);
    AddTier(ClusterPolicy::Tier::kAdmin, pod, direction, builder, out.admin);
    if (!out.permitted) AddTier(ClusterPolicy::Tier::kBaseline, pod, direction, builder, out.baseline);
    return out;
  }

  void AddTier(ClusterPolicy::Tier tier, const Pod& pod, Direction direction, ClauseBuilder& builder,
               std::vector<Clause>& out) const {
    for (const ClusterPolicy* policy : Deciding(cluster_, tier, pod)) {
      for (size_t i = 0; i < policy->Rules(direction).size(); ++i) {
        builder.Add(*policy, i, pod, direction, out);
      }
    }
  }

  void AddChain(const ChainSpec& chain, Direction direction, bool v4) {
    auto [contents, is_new] = plan_.rules.chains.try_emplace(chain.name);
    if (!is_new) return;
    contents->second.chain = {chain.name};
    contents->second.rules = RulesOf(chain, direction, v4, node_.log);
    for (const Clause& clause : chain.clauses) {
      if (clause.peers) AddSet(*clause.peers);
      if (clause.ports) AddSet(*clause.ports);
    }
  }

  void AddSet(const SetSpec& spec) {
    auto [contents, is_new] = plan_.rules.sets.try_emplace(spec.set.name);
    if (!is_new) return;
    contents->second.set = spec.set;
    for (const nft::Element& element : spec.fixed) Put(spec.set.name, element);
    if (spec.of_nodes) {
      for (const std::string& node : KeysOf(spec, cluster_.nodes)) Put(spec.set.name, {.key = node});
    }
    if (!spec.of_pods) return;
    members_.ForEach(cluster_, spec.ns, spec.peer, [&](const Members::Member& member) {
      for (const IpAddress& address : member.addresses) {
        for (std::string& key : KeysOf(spec, *member.pod, address)) Put(spec.set.name, {.key = key});
      }
    });
  }

  const Cluster& cluster_;
  const Node& node_;
  const Attachments& attachments_;
  const Members members_;
  Plan plan_;
};

}  // namespace

Plan MakePlan(const Cluster& cluster, const Node& node, const Attachments& attachments) {
  return Planner(cluster, node, attachments).Run();
}

Attachments AttachmentsOf(const nft::Ruleset& found) {
  Attachments out;
  for (bool v4 : {true, false}) {
    auto set = found.sets.find(dataplane::AttachedPods(v4).name);
    if (set == found.sets.end() || !(set->second.set == dataplane::AttachedPods(v4))) continue;
    for (const auto& [key, element] : set->second.elements) {
      if (key.size() != (v4 ? 4u : 16u) || element.data.size() != sizeof(uint32_t)) continue;
      Attachment attachment{.uid = element.comment};
      std::memcpy(&attachment.epoch, element.data.data(), sizeof attachment.epoch);
      out.emplace(IpAddress::FromBytes(key), std::move(attachment));
    }
  }
  return out;
}

nft::Element ElementOf(const IpAddress& address, const Attachment& attachment) {
  return {.key = nft::Key().Ip(address).bytes(),
          .data = nft::Key().Mark(attachment.epoch).bytes(),
          .comment = attachment.uid};
}

}  // namespace keelson::cni::policy
