#include "cni/policy/node_plan.h"

#include <algorithm>

#include "cni/policy/base_rules.h"
#include "cni/policy/chains.h"
#include "lib/dataplane/policy_sets.h"
#include "lib/nft/diff.h"

namespace keelson::cni::policy {
namespace {

constexpr Direction kDirections[] = {Direction::kIngress, Direction::kEgress};

size_t IndexOf(Direction direction) { return direction == Direction::kIngress ? 0 : 1; }

nft::Element AddressElement(const IpAddress& address) { return {.key = nft::Key().Ip(address).bytes()}; }
nft::Element SelfElement(const IpAddress& address) {
  return {.key = nft::Key().Ip(address).Ip(address).bytes()};
}
nft::Element VerdictElement(const IpAddress& address, const std::string& chain) {
  return {.key = nft::Key().Ip(address).bytes(), .verdict = nft::Jump(chain)};
}

}  // namespace

NodePlan::NodePlan(const Cluster& cluster, Node node)
    : cluster_(cluster),
      node_(std::move(node)),
      objects_(BaseRules(node_), node_.log, [this](const SetSpec& spec) { Fill(spec); }),
      owners_(node_.name) {
  for (const auto& [key, policy] : cluster_.policies) ChangePolicy(key, nullptr, &policy);
  PutThisNode();
  for (const auto& [key, pod] : cluster_.pods) owners_.Add(pod);
  for (const auto& [key, pod] : cluster_.pods) {
    for (const IpAddress& address : pod.addresses) {
      Disown(address);
      Own(address);
    }
  }
}

const Labels* NodePlan::LabelsOf(const std::string& ns) const {
  auto found = cluster_.namespaces.find(ns);
  return found == cluster_.namespaces.end() ? nullptr : &found->second;
}

std::set<IpAddress> NodePlan::Remove(const Pod& pod) {
  std::set<IpAddress> out;
  for (const IpAddress& address : owners_.AddressesOf(pod)) {
    Disown(address);
    out.insert(address);
  }
  owners_.Remove(pod);
  return out;
}

void NodePlan::Add(const Pod* pod, const std::set<IpAddress>& freed) {
  std::set<IpAddress> changed = freed;
  if (pod) {
    owners_.Add(*pod);
    for (const IpAddress& address : owners_.AddressesOf(*pod)) {
      if (changed.insert(address).second) Disown(address);
    }
  }
  for (const IpAddress& address : changed) Own(address);
}

void NodePlan::Attach(const IpAddress& address, const std::optional<Attachment>& attachment) {
  const std::string set = dataplane::AttachedPods(address.is_v4()).name;
  Disown(address);
  auto before = owners_.attachments().find(address);
  if (before != owners_.attachments().end()) objects_.Erase(set, ElementOf(address, before->second));
  if (attachment) objects_.Put(set, ElementOf(address, *attachment));
  owners_.Attach(address, attachment);
  Own(address);
}

void NodePlan::Disown(const IpAddress& address) {
  auto owned = owned_.find(address);
  if (owned == owned_.end()) return;
  const Pod& pod = *owned->second;
  auto local = local_.find(address);
  if (local != local_.end()) {
    LeaveRules(address, local->second);
    objects_.Erase(dataplane::ReadyPods(address.is_v4()).name, AddressElement(address));
    ready_.erase(address);
    ready_changes_[address] = std::nullopt;
    local_by_namespace_[pod.ns].erase(address);
    local_.erase(local);
  }
  objects_.ForEachSetOf(pod, LabelsOf(pod.ns),
                        [&](const SetSpec& spec) { objects_.ErasePod(spec, pod, address); });
  owned_.erase(owned);
}

void NodePlan::Own(const IpAddress& address) {
  const Pod* pod = owners_.OwnerOf(address);
  if (!pod) return;
  owned_[address] = pod;
  objects_.ForEachSetOf(*pod, LabelsOf(pod->ns),
                        [&](const SetSpec& spec) { objects_.PutPod(spec, *pod, address); });
  auto attachment = owners_.attachments().find(address);
  if (attachment == owners_.attachments().end()) return Remember(address, *pod);
  LocalAddress& local = local_[address];
  local.pod = pod;
  local_by_namespace_[pod->ns].insert(address);
  objects_.Put(dataplane::ReadyPods(address.is_v4()).name, AddressElement(address));
  ready_.insert(*attachment);
  ready_changes_[address] = attachment->second;
  EnterRules(address, local);
}

// Of a static pod the mirror may be replaced; the containers stay.
void NodePlan::Remember(const IpAddress& address, const Pod& owner) {
  const size_t now = std::hash<std::string>()(owner.static_uid.empty() ? owner.uid : owner.static_uid);
  auto [last, is_new] = last_owners_.try_emplace(address, now);
  if (last->second != now) handed_over_.insert(address);
  last->second = now;
}

// A set of pods that is new gets the addresses whose effects are in place; others follow by Own().
void NodePlan::Fill(const SetSpec& spec) {
  if (spec.of_nodes) {
    for (const std::string& key : KeysOf(spec, cluster_.nodes)) objects_.Put(spec.set.name, {.key = key});
    return;
  }
  auto visit = [&](const Pod& pod, const Labels* labels) {
    if (!Picks(spec, pod, labels)) return;
    for (const IpAddress& address : owners_.AddressesOf(pod)) {
      auto owned = owned_.find(address);
      if (owned != owned_.end() && owned->second == &pod) objects_.PutPod(spec, pod, address);
    }
  };
  auto visit_namespace = [&](const std::string& ns, const Labels* labels) {
    const auto& pods = cluster_.pods;
    for (auto at = pods.lower_bound(ns + "/"); at != pods.end() && at->second.ns == ns; ++at) {
      visit(at->second, labels);
    }
  };
  if (!spec.peer.namespaces) return visit_namespace(spec.ns, LabelsOf(spec.ns));
  for (const auto& [ns, labels] : cluster_.namespaces) {
    if (spec.peer.namespaces->Matches(labels)) visit_namespace(ns, &labels);
  }
}

std::string NodePlan::Enter(const IpAddress& address, const std::string& set, const PodRules& rules,
                            Direction direction) {
  std::vector<ChainSpec> chains = ChainsFor(rules, direction, address.is_v4());
  objects_.Refer(chains, direction, address.is_v4());
  objects_.Put(set, VerdictElement(address, chains.front().name));
  return std::move(chains.front().name);
}

void NodePlan::Leave(const IpAddress& address, const std::string& set, const std::string& chain) {
  objects_.Erase(set, VerdictElement(address, chain));
  objects_.Release(chain);
}

void NodePlan::EnterRules(const IpAddress& address, LocalAddress& local) {
  bool v4 = address.is_v4(), isolated = false;
  for (Direction direction : kDirections) {
    PodRules rules = RulesFor(*local.pod, direction, v4);
    if (!rules.Any()) continue;
    isolated = true;
    local.chains[IndexOf(direction)] = Enter(address, VerdictsName(direction, v4), rules, direction);
    if (direction == Direction::kIngress) continue;
    const PodRules own = ToOwnNode(rules);
    if (own.Any()) local.to_node = Enter(address, ToThisNodeSet(v4).name, own, direction);
  }
  if (!isolated) return;
  ++isolated_;
  objects_.Put(SelfSet(v4).name, SelfElement(address));
}

void NodePlan::LeaveRules(const IpAddress& address, LocalAddress& local) {
  bool v4 = address.is_v4(), isolated = false;
  for (Direction direction : kDirections) {
    std::string chain = std::exchange(local.chains[IndexOf(direction)], {});
    if (chain.empty()) continue;
    isolated = true;
    Leave(address, VerdictsName(direction, v4), chain);
  }
  const std::string to_node = std::exchange(local.to_node, {});
  if (!to_node.empty()) Leave(address, ToThisNodeSet(v4).name, to_node);
  if (!isolated) return;
  --isolated_;
  objects_.Erase(SelfSet(v4).name, SelfElement(address));
}

void NodePlan::AddTier(ClusterPolicy::Tier tier, const Pod& pod, Direction direction, bool v4,
                       std::vector<Clause>& out) {
  for (const ClusterPolicy* policy : Deciding(cluster_, tier, pod)) {
    for (size_t i = 0; i < policy->Rules(direction).size(); ++i) {
      builders_[v4].Add(*policy, i, pod, direction, out);
    }
  }
}

PodRules NodePlan::RulesFor(const Pod& pod, Direction direction, bool v4) {
  std::vector<PolicyState*> selecting;
  policies_by_label_.Find(pod.ns, pod.labels, [&](PolicyState* state) {
    if (state->policy->Isolates(direction) && state->policy->pods.Matches(pod.labels)) {
      selecting.push_back(state);
    }
  });
  PodRules out;
  AddTier(ClusterPolicy::Tier::kAdmin, pod, direction, v4, out.admin);
  if (selecting.empty()) {
    AddTier(ClusterPolicy::Tier::kBaseline, pod, direction, v4, out.baseline);
    return out;
  }
  std::sort(selecting.begin(), selecting.end(),
            [](const PolicyState* a, const PolicyState* b) { return a->key < b->key; });
  out.permitted.emplace();
  for (PolicyState* state : selecting) {
    out.isolated_by.push_back(state->key);
    if (ClauseBuilder::DependsOnPod(*state->policy, direction)) {
      builders_[v4].Add(*state->policy, pod, direction, *out.permitted);
      continue;
    }
    auto& clauses = state->clauses[IndexOf(direction)][v4];
    if (!clauses) builders_[v4].Add(*state->policy, pod, direction, clauses.emplace());
    out.permitted->insert(out.permitted->end(), clauses->begin(), clauses->end());
  }
  Normalize(*out.permitted);
  return out;
}

void NodePlan::AddSelected(const Policy& policy, std::set<IpAddress>& out) const {
  auto addresses = local_by_namespace_.find(policy.ns);
  if (addresses == local_by_namespace_.end()) return;
  for (const IpAddress& address : addresses->second) {
    if (policy.pods.Matches(local_.at(address).pod->labels)) out.insert(address);
  }
}

void NodePlan::ChangePolicy(const std::string& key, const Policy* before, const Policy* now) {
  std::set<IpAddress> addresses;
  if (before) AddSelected(*before, addresses);
  if (now) AddSelected(*now, addresses);
  for (const IpAddress& address : addresses) LeaveRules(address, local_.at(address));
  if (before) {
    auto state = policies_.find(key);
    policies_by_label_.Remove(before->ns, before->pods, state->second.get());
    policies_.erase(state);
  }
  if (now) {
    auto& state = policies_[key] = std::make_unique<PolicyState>();
    state->policy = now;
    state->key = key;
    policies_by_label_.Add(now->ns, now->pods, state.get());
  }
  for (const IpAddress& address : addresses) EnterRules(address, local_.at(address));
}

void NodePlan::ChangeClusterPolicy(const ClusterPolicy* before, const ClusterPolicy* now,
                                   const std::function<void()>& change) {
  std::set<IpAddress> addresses;
  for (const auto& [address, local] : local_) {
    for (const ClusterPolicy* policy : {before, now}) {
      if (policy && policy->Selects(local.pod->labels, LabelsOf(local.pod->ns))) addresses.insert(address);
    }
  }
  for (const IpAddress& address : addresses) LeaveRules(address, local_.at(address));
  change();
  for (const IpAddress& address : addresses) EnterRules(address, local_.at(address));
}

void NodePlan::ChangeLabels(const std::string& ns, const Labels* before, const Labels* now,
                            const std::function<void()>& change) {
  std::set<IpAddress> addresses;
  auto local = local_by_namespace_.find(ns);
  // The labels of a namespace decide which ClusterNetworkPolicies select its pods.
  if (local != local_by_namespace_.end() && !cluster_.cluster_policies.empty()) addresses = local->second;
  for (const IpAddress& address : addresses) LeaveRules(address, local_.at(address));
  ChangeMembers(ns, before, now);
  change();
  for (const IpAddress& address : addresses) EnterRules(address, local_.at(address));
}

void NodePlan::PutThisNode() {
  auto own = cluster_.nodes.find(node_.name);
  if (own == cluster_.nodes.end()) return;
  for (const IpAddress& address : own->second.addresses) {
    objects_.Put(ThisNodeSet(address.is_v4()).name, AddressElement(address));
  }
}

// Whole sets are compared: nodes may share an address, and seldom change their labels or addresses.
void NodePlan::ChangeNodes(const std::function<void()>& change) {
  std::map<const SetSpec*, std::set<std::string>> before;
  for (const SetSpec* spec : objects_.OfNodes()) before[spec] = KeysOf(*spec, cluster_.nodes);
  auto own = cluster_.nodes.find(node_.name);
  if (own != cluster_.nodes.end()) {
    for (const IpAddress& address : own->second.addresses) {
      objects_.Erase(ThisNodeSet(address.is_v4()).name, AddressElement(address));
    }
  }
  change();
  PutThisNode();
  for (const auto& [spec, keys] : before) {
    const std::set<std::string> now = KeysOf(*spec, cluster_.nodes);
    for (const std::string& key : keys) {
      if (!now.contains(key)) objects_.Erase(spec->set.name, {.key = key});
    }
    for (const std::string& key : now) {
      if (!keys.contains(key)) objects_.Put(spec->set.name, {.key = key});
    }
  }
}

void NodePlan::ChangeMembers(const std::string& ns, const Labels* before, const Labels* now) {
  for (const SetSpec* spec : objects_.OfAllNamespaces()) {
    bool picked = before && spec->peer.namespaces->Matches(*before);
    bool picks = now && spec->peer.namespaces->Matches(*now);
    if (picked == picks) continue;
    const auto& pods = cluster_.pods;
    for (auto at = pods.lower_bound(ns + "/"); at != pods.end() && at->second.ns == ns; ++at) {
      const Pod& pod = at->second;
      if (!Picks(*spec, pod, picks ? now : before)) continue;
      for (const IpAddress& address : owners_.AddressesOf(pod)) {
        auto owned = owned_.find(address);
        if (owned == owned_.end() || owned->second != &pod) continue;
        picks ? objects_.PutPod(*spec, pod, address) : objects_.ErasePod(*spec, pod, address);
      }
    }
  }
}

nft::Transaction NodePlan::TakeTransaction(const nft::Ruleset* found) {
  std::map<std::string, nft::Set> compared;
  nft::Ruleset wanted{.table = dataplane::PolicyTable()};
  if (found) {
    for (bool v4 : {true, false}) {
      for (const nft::Set& set : {dataplane::AttachedPods(v4), dataplane::ReadyPods(v4)}) {
        compared[set.name] = set;
        wanted.sets[set.name].set = set;
      }
    }
    for (const auto& [address, attachment] : owners_.attachments()) {
      nft::Element element = ElementOf(address, attachment);
      std::string key = element.key;
      wanted.sets[dataplane::AttachedPods(address.is_v4()).name].elements.emplace(std::move(key),
                                                                                  std::move(element));
    }
    for (const auto& [address, attachment] : ready_) {
      nft::Element element = AddressElement(address);
      std::string key = element.key;
      wanted.sets[dataplane::ReadyPods(address.is_v4()).name].elements.emplace(std::move(key),
                                                                               std::move(element));
    }
  }
  nft::Transaction out = objects_.Take(compared);
  if (found) out.Append(nft::Diff(*found, wanted));
  return out;
}

void NodePlan::ForEachLocalPod(const std::function<void(const Pod&)>& each) const {
  std::set<const Pod*> seen;
  for (const auto& [address, local] : local_) {
    if (seen.insert(local.pod).second) each(*local.pod);
  }
}

void NodePlan::Forget() {
  objects_.Forget();
  ready_changes_.clear();
}

}  // namespace keelson::cni::policy
