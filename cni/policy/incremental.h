// The plan of a node, kept up to date event by event: each costs what it changes, whatever the number of other
// pods and policies. MakePlan() (plan.h) is its reference: both lead to the same table.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>

#include "cni/policy/live_objects.h"
#include "cni/policy/owners.h"
#include "cni/policy/plan.h"

namespace keelson::cni::policy {

class NodePlan;

// Not thread safe. What needs a node may be called after SetNode() only.
class Incremental {
 public:
  // A cluster without objects. Before SetNode() events are stored and cost nothing more.
  Incremental();
  ~Incremental();

  const Cluster& cluster() const { return cluster_; }
  uint64_t policies_version() const { return policies_version_; }  // grows when a policy changes; 1 at first
  void PutPod(const std::string& key, Pod pod);
  void PutNamespace(const std::string& name, Labels labels);
  void PutPolicy(const std::string& key, Policy policy);
  void PutClusterPolicy(const std::string& name, ClusterPolicy policy);
  // All Nodes, as peers.
  void SetNodes(ClusterNodes nodes);
  // An absent object is fine.
  void ErasePod(const std::string& key);
  void EraseNamespace(const std::string& name);
  void ErasePolicy(const std::string& key);
  void EraseClusterPolicy(const std::string& name);

  // Starts over when the node is another one, or its CIDRs are; true then, and the next transaction must come
  // from MakePlan().
  bool SetNode(const Node& node);
  bool has_node() const { return plan_ != nullptr; }

  // What the sets `attached4` and `attached6` hold. Needs a node, as all that follows.
  void SetAttachments(const Attachments& attachments);
  const Attachments& attachments() const;
  // The attachments that pods from before policies were enforced lack (members.h).
  std::map<IpAddress, std::string> Unattached() const;
  size_t isolated() const;           // as in Plan
  const Attachments& ready() const;  // as in Plan

  // Each pod of this node that is attached, once.
  void ForEachLocalPod(const std::function<void(const Pod&)>& each) const;

  struct Changes {
    nft::Transaction transaction;
    // Addresses that become ready, with the attachment, or cease to be.
    std::map<IpAddress, std::optional<Attachment>> ready;
  };
  // What has changed since the last Take() or Forget(). `found`, if given, is what the kernel holds of
  // AttachedPods() and ReadyPods(): these sets are compared with it.
  Changes Take(const nft::Ruleset* found = nullptr);
  // Addresses of other nodes that pods have handed over since the last call. Connections of the former pod that this
  // node tracks must not count as the new one's.
  std::set<IpAddress> TakeHandedOver();
  // The kernel has, or will have, the table of MakePlan(cluster(), node, attachments()).
  void Forget();

 private:
  Cluster cluster_;
  uint64_t policies_version_ = 1;
  std::unique_ptr<NodePlan> plan_;
};

}  // namespace keelson::cni::policy
