#include "cni/policy/incremental.h"

#include <utility>

#include "cni/policy/node_plan.h"

namespace keelson::cni::policy {

Incremental::Incremental() = default;
Incremental::~Incremental() = default;

void Incremental::PutPod(const std::string& key, Pod pod) {
  if (!plan_) {
    cluster_.pods.insert_or_assign(key, std::move(pod));
    return;
  }
  std::set<IpAddress> freed;
  auto there = cluster_.pods.find(key);
  if (there != cluster_.pods.end()) {
    freed = plan_->Remove(there->second);
    there->second = std::move(pod);
  } else {
    there = cluster_.pods.emplace(key, std::move(pod)).first;
  }
  plan_->Add(&there->second, freed);
}

void Incremental::ErasePod(const std::string& key) {
  auto there = cluster_.pods.find(key);
  if (there == cluster_.pods.end()) return;
  std::set<IpAddress> freed;
  if (plan_) freed = plan_->Remove(there->second);
  cluster_.pods.erase(there);
  if (plan_) plan_->Add(nullptr, freed);
}

void Incremental::PutNamespace(const std::string& name, Labels labels) {
  auto there = cluster_.namespaces.find(name);
  auto change = [&] { cluster_.namespaces.insert_or_assign(name, std::move(labels)); };
  if (!plan_) return change();
  const Labels before = there == cluster_.namespaces.end() ? Labels() : there->second;
  plan_->ChangeLabels(name, there == cluster_.namespaces.end() ? nullptr : &before, &labels, change);
}

void Incremental::EraseNamespace(const std::string& name) {
  auto there = cluster_.namespaces.find(name);
  if (there == cluster_.namespaces.end()) return;
  auto change = [&] { cluster_.namespaces.erase(there); };
  if (!plan_) return change();
  const Labels before = there->second;
  plan_->ChangeLabels(name, &before, nullptr, change);
}

void Incremental::PutClusterPolicy(const std::string& name, ClusterPolicy policy) {
  ++policies_version_;
  auto there = cluster_.cluster_policies.find(name);
  const bool known = there != cluster_.cluster_policies.end();
  const ClusterPolicy before = known ? there->second : ClusterPolicy();
  auto change = [&] { cluster_.cluster_policies.insert_or_assign(name, std::move(policy)); };
  if (!plan_) return change();
  plan_->ChangeClusterPolicy(known ? &before : nullptr, &policy, change);
}

void Incremental::EraseClusterPolicy(const std::string& name) {
  auto there = cluster_.cluster_policies.find(name);
  if (there == cluster_.cluster_policies.end()) return;
  ++policies_version_;
  const ClusterPolicy before = there->second;
  auto change = [&] { cluster_.cluster_policies.erase(there); };
  if (!plan_) return change();
  plan_->ChangeClusterPolicy(&before, nullptr, change);
}

void Incremental::PutPolicy(const std::string& key, Policy policy) {
  ++policies_version_;
  auto before = cluster_.policies.extract(key);
  auto now = cluster_.policies.emplace(key, std::move(policy)).first;
  if (plan_) plan_->ChangePolicy(key, before ? &before.mapped() : nullptr, &now->second);
}

void Incremental::ErasePolicy(const std::string& key) {
  auto there = cluster_.policies.find(key);
  if (there == cluster_.policies.end()) return;
  ++policies_version_;
  if (plan_) plan_->ChangePolicy(key, &there->second, nullptr);
  cluster_.policies.erase(there);
}

void Incremental::SetNodes(ClusterNodes nodes) {
  auto change = [&] { cluster_.nodes = std::move(nodes); };
  plan_ ? plan_->ChangeNodes(change) : change();
}

bool Incremental::SetNode(const Node& node) {
  if (plan_ && plan_->node() == node) return false;
  plan_ = std::make_unique<NodePlan>(cluster_, node);
  return true;
}

void Incremental::SetAttachments(const Attachments& attachments) {
  const Attachments& known = plan_->owners().attachments();
  std::map<IpAddress, std::optional<Attachment>> changed;
  for (const auto& [address, attachment] : known) {
    if (!attachments.contains(address)) changed[address] = std::nullopt;
  }
  for (const auto& [address, attachment] : attachments) {
    auto there = known.find(address);
    if (there == known.end() || !(there->second == attachment)) changed[address] = attachment;
  }
  for (const auto& [address, attachment] : changed) plan_->Attach(address, attachment);
}

const Attachments& Incremental::attachments() const { return plan_->owners().attachments(); }
const Attachments& Incremental::ready() const { return plan_->ready(); }
size_t Incremental::isolated() const { return plan_->isolated(); }

void Incremental::ForEachLocalPod(const std::function<void(const Pod&)>& each) const {
  plan_->ForEachLocalPod(each);
}

std::map<IpAddress, std::string> Incremental::Unattached() const {
  return plan_->owners().Unattached(plan_->node().pod_cidrs);
}

Incremental::Changes Incremental::Take(const nft::Ruleset* found) {
  return {.transaction = plan_->TakeTransaction(found), .ready = plan_->TakeReady()};
}

std::set<IpAddress> Incremental::TakeHandedOver() { return plan_->TakeHandedOver(); }

void Incremental::Forget() { plan_->Forget(); }

}  // namespace keelson::cni::policy
