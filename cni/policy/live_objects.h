// The chains and sets of the table that are in use, counted by what refers to them. Those that are no longer
// referred to stay until the next transaction: most come back at once.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cni/policy/chains.h"
#include "cni/policy/selector_index.h"
#include "cni/policy/sets.h"
#include "cni/policy/table_changes.h"

namespace keelson::cni::policy {

class LiveObjects {
 public:
  // `base`: what always stays. `fill` adds the elements of pods and nodes to a set that is new.
  LiveObjects(nft::Ruleset base, std::optional<DeniedLog> log, std::function<void(const SetSpec&)> fill)
      : base_(std::move(base)), log_(log), fill_(std::move(fill)), changes_(base_.table) {}

  // To the first of these chains, which lead to each other (ChainsFor()).
  void Refer(const std::vector<ChainSpec>& chains, Direction direction, bool v4);
  void Release(const std::string& chain);

  // Calls `each` with every set that has elements of the pod. `namespace_labels`: as for Picks().
  template <typename Each>
  void ForEachSetOf(const Pod& pod, const Labels* namespace_labels, Each each) const {
    auto visit = [&](const SetSpec* spec) {
      if (Picks(*spec, pod, namespace_labels)) each(*spec);
    };
    by_pod_.Find(pod.ns, pod.labels, visit);
    if (!namespace_labels) return;
    by_pod_.Find("", pod.labels, visit);
    by_namespace_.Find("", *namespace_labels, visit);
  }
  // Sets with a namespace selector.
  const std::set<const SetSpec*>& OfAllNamespaces() const { return of_all_namespaces_; }
  // Sets of nodes' addresses.
  const std::set<const SetSpec*>& OfNodes() const { return of_nodes_; }

  void PutPod(const SetSpec& spec, const Pod& pod, const IpAddress& address);
  void ErasePod(const SetSpec& spec, const Pod& pod, const IpAddress& address);
  // Of a set of `base`; as TableChanges.
  void Put(const std::string& set, nft::Element element) { changes_.Put(set, std::move(element)); }
  void Erase(const std::string& set, nft::Element element) { changes_.Erase(set, std::move(element)); }

  // What has changed since the last Take() or Forget(), but for sets of `leave_out`.
  nft::Transaction Take(const std::map<std::string, nft::Set>& leave_out);
  void Forget();

 private:
  struct Chain {
    int references = 0;
    std::vector<SetRef> sets;
    std::string next;  // the chain that it leads to; may be empty
  };
  struct Set {
    int references = 0;
    SetRef spec;
  };
  void Refer(const SetRef& set);
  void File(const SetSpec& spec, bool add);
  void RemoveUnused();

  const nft::Ruleset base_;
  const std::optional<DeniedLog> log_;
  const std::function<void(const SetSpec&)> fill_;
  TableChanges changes_;
  std::map<std::string, Chain> chains_;
  std::map<std::string, Set> sets_;
  std::set<std::string> unused_;  // chains that may be
  // Sets of pods: by the pod selector, in the scope of their namespace or "" for all. Those of all namespaces
  // whose pod selector says little: by the namespace selector.
  SelectorIndex<const SetSpec*> by_pod_, by_namespace_;
  std::set<const SetSpec*> of_all_namespaces_, of_nodes_;
};

}  // namespace keelson::cni::policy
