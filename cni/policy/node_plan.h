// The half of incremental.h that belongs to one node.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>

#include "cni/policy/clauses.h"
#include "cni/policy/live_objects.h"
#include "cni/policy/owners.h"
#include "cni/policy/plan.h"
#include "cni/policy/selector_index.h"

namespace keelson::cni::policy {

// Follows objects of `cluster`, which the caller changes between the calls for the old state and the new one.
class NodePlan {
 public:
  NodePlan(const Cluster& cluster, Node node);
  NodePlan(const NodePlan&) = delete;
  NodePlan& operator=(const NodePlan&) = delete;

  const Node& node() const { return node_; }
  const Owners& owners() const { return owners_; }
  const Attachments& ready() const { return ready_; }
  size_t isolated() const { return isolated_; }

  // Takes the pod's effects back, and returns the addresses that may be another pod's now. The pod's contents
  // may change or go then.
  std::set<IpAddress> Remove(const Pod& pod);
  // Puts a pod's effects in place; `freed`: what Remove() has returned.
  void Add(const Pod* pod, const std::set<IpAddress>& freed);
  void Attach(const IpAddress& address, const std::optional<Attachment>& attachment);
  // Null: there is no such namespace. `change` makes the change in the cluster.
  void ChangeLabels(const std::string& ns, const Labels* before, const Labels* now,
                    const std::function<void()>& change);
  // Both stay where they are until this returns.
  void ChangeClusterPolicy(const ClusterPolicy* before, const ClusterPolicy* now,
                           const std::function<void()>& change);
  // `change` makes the change in the cluster.
  void ChangeNodes(const std::function<void()>& change);
  // Null: there is no such policy. `now` stays where it is until the next call for `key`.
  void ChangePolicy(const std::string& key, const Policy* before, const Policy* now);

  // Each pod of this node that is attached, once.
  void ForEachLocalPod(const std::function<void(const Pod&)>& each) const;

  nft::Transaction TakeTransaction(const nft::Ruleset* found);
  std::map<IpAddress, std::optional<Attachment>> TakeReady() { return std::exchange(ready_changes_, {}); }
  // Addresses of other nodes that another pod has now than the last one that had it.
  std::set<IpAddress> TakeHandedOver() { return std::exchange(handed_over_, {}); }
  void Forget();

 private:
  // What a policy permits is worked out when it selects a pod of this node for the first time.
  struct PolicyState {
    const Policy* policy = nullptr;
    std::string key;
    std::optional<std::vector<Clause>> clauses[2][2];  // by direction and family; of policies that permit
                                                       // all their pods the same
  };
  // An address of a pod of this node that is attached.
  struct LocalAddress {
    const Pod* pod = nullptr;
    std::string chains[2];  // by direction; empty: not isolated
    std::string to_node;    // chain for packets to this node; empty: all pass
  };

  const Labels* LabelsOf(const std::string& ns) const;
  void Disown(const IpAddress& address);  // takes back the effects of its owner
  void Own(const IpAddress& address);     // puts those of its present owner in place
  void Remember(const IpAddress& address, const Pod& owner);
  void Fill(const SetSpec& spec);
  // Which sets have elements of the namespace's pods.
  void ChangeMembers(const std::string& ns, const Labels* before, const Labels* now);
  void PutThisNode();
  // Leads the address to the rules, by a map of addresses to chains. Returns the first chain.
  std::string Enter(const IpAddress& address, const std::string& set, const PodRules& rules,
                    Direction direction);
  void Leave(const IpAddress& address, const std::string& set, const std::string& chain);
  void EnterRules(const IpAddress& address, LocalAddress& local);
  void LeaveRules(const IpAddress& address, LocalAddress& local);
  void AddTier(ClusterPolicy::Tier tier, const Pod& pod, Direction direction, bool v4,
               std::vector<Clause>& out);
  PodRules RulesFor(const Pod& pod, Direction direction, bool v4);
  void AddSelected(const Policy& policy, std::set<IpAddress>& out) const;

  const Cluster& cluster_;
  const Node node_;
  LiveObjects objects_;
  Owners owners_;
  ClauseBuilder builders_[2] = {ClauseBuilder(false), ClauseBuilder(true)};
  std::unordered_map<std::string, std::unique_ptr<PolicyState>> policies_;  // by key
  SelectorIndex<PolicyState*> policies_by_label_;                           // scope: namespace
  std::unordered_map<IpAddress, const Pod*> owned_;                         // whose effects are in place
  std::map<IpAddress, LocalAddress> local_;
  std::unordered_map<std::string, std::set<IpAddress>> local_by_namespace_;
  Attachments ready_;
  std::map<IpAddress, std::optional<Attachment>> ready_changes_;
  size_t isolated_ = 0;
  std::unordered_map<IpAddress, size_t> last_owners_;  // of addresses of other nodes: hashes of UIDs
  std::set<IpAddress> handed_over_;
};

}  // namespace keelson::cni::policy
