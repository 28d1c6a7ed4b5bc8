#include "cni/policy/live_objects.h"

namespace keelson::cni::policy {

void LiveObjects::Refer(const std::vector<ChainSpec>& specs, Direction direction, bool v4) {
  for (const ChainSpec& spec : specs) {
    auto [chain, is_new] = chains_.try_emplace(spec.name);
    ++chain->second.references;
    if (!is_new) return;  // it refers to the others already
    changes_.AddChain(spec.name, RulesOf(spec, direction, v4, log_));
    chain->second.next = spec.next;
    for (const Clause& clause : spec.clauses) {
      for (const SetRef* set : {&clause.peers, &clause.ports}) {
        if (!*set) continue;
        Refer(*set);
        chain->second.sets.push_back(*set);
      }
    }
  }
}

void LiveObjects::Release(const std::string& chain) {
  if (--chains_.at(chain).references == 0) unused_.insert(chain);
}

void LiveObjects::Refer(const SetRef& spec) {
  auto [set, is_new] = sets_.try_emplace(spec->set.name);
  ++set->second.references;
  if (!is_new) return;
  set->second.spec = spec;
  changes_.AddSet(spec->set);
  for (const nft::Element& element : spec->fixed) changes_.Put(spec->set.name, element);
  if (!spec->of_pods && !spec->of_nodes) return;
  File(*spec, true);
  fill_(*spec);
}

void LiveObjects::File(const SetSpec& spec, bool add) {
  if (spec.of_nodes) {
    if (add) {
      of_nodes_.insert(&spec);
    } else {
      of_nodes_.erase(&spec);
    }
    return;
  }
  const Selector pods = spec.peer.pods.value_or(Selector());
  bool by_namespace = spec.peer.namespaces && !SelectorIndex<const SetSpec*>::IsSpecific(pods);
  auto& index = by_namespace ? by_namespace_ : by_pod_;
  const Selector& selector = by_namespace ? *spec.peer.namespaces : pods;
  const std::string scope = spec.peer.namespaces ? "" : spec.ns;
  add ? index.Add(scope, selector, &spec) : index.Remove(scope, selector, &spec);
  if (!spec.peer.namespaces) return;
  if (add) {
    of_all_namespaces_.insert(&spec);
  } else {
    of_all_namespaces_.erase(&spec);
  }
}

void LiveObjects::PutPod(const SetSpec& spec, const Pod& pod, const IpAddress& address) {
  for (std::string& key : KeysOf(spec, pod, address)) changes_.Put(spec.set.name, {.key = std::move(key)});
}

void LiveObjects::ErasePod(const SetSpec& spec, const Pod& pod, const IpAddress& address) {
  for (std::string& key : KeysOf(spec, pod, address)) changes_.Erase(spec.set.name, {.key = std::move(key)});
}

void LiveObjects::RemoveUnused() {
  while (!unused_.empty()) {
    const std::string name = std::move(unused_.extract(unused_.begin()).value());
    auto chain = chains_.find(name);
    if (chain->second.references > 0) continue;
    for (const SetRef& spec : chain->second.sets) {
      auto set = sets_.find(spec->set.name);
      if (--set->second.references > 0) continue;
      // Equal descriptions may have been made twice; the one that is filed counts.
      const SetRef filed = set->second.spec;
      if (filed->of_pods || filed->of_nodes) File(*filed, false);
      changes_.RemoveSet(set->first);
      sets_.erase(set);
    }
    changes_.RemoveChain(name);
    const std::string next = std::move(chain->second.next);
    chains_.erase(chain);
    if (!next.empty()) Release(next);
  }
}

nft::Transaction LiveObjects::Take(const std::map<std::string, nft::Set>& leave_out) {
  RemoveUnused();
  auto shape = [&](const std::string& name) -> const nft::Set& {
    auto set = sets_.find(name);
    return set != sets_.end() ? set->second.spec->set : base_.sets.at(name).set;
  };
  return changes_.Take(shape, leave_out);
}

void LiveObjects::Forget() {
  RemoveUnused();
  changes_.Forget();
}

}  // namespace keelson::cni::policy
