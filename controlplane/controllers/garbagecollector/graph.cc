#include "controlplane/controllers/garbagecollector/graph.h"

namespace keelson::controllers {
namespace {

std::string KeyOf(const std::string& ns, const metav1::OwnerReference& owner) {
  return ns + "/" + owner.api_version() + "/" + owner.kind() + "/" + owner.name() + "/" + owner.uid();
}

}  // namespace

void OwnerGraph::Link(const GraphNode& node) {
  for (const auto& owner : node.owners) dependents_[owner.uid()].insert(node.uid);
}

void OwnerGraph::Unlink(const GraphNode& node) {
  for (const auto& owner : node.owners) {
    auto it = dependents_.find(owner.uid());
    if (it == dependents_.end()) continue;
    it->second.erase(node.uid);
    if (it->second.empty()) dependents_.erase(it);
  }
}

std::vector<std::string> OwnerGraph::Observe(GraphNode node) {
  const std::string uid = node.uid;
  std::vector<std::string> affected;
  if (!node.owners.empty() || node.foreground || node.orphaning) affected.push_back(uid);
  MutexLock lock(mutex_);
  GraphNode& stored = nodes_[uid];
  // Process an owner that waited for this object when the reference was removed.
  for (const auto& owner : stored.owners) {
    auto it = nodes_.find(owner.uid());
    if (it != nodes_.end() && it->second.foreground) affected.push_back(owner.uid());
  }
  const bool begins_to_wait = node.foreground && !stored.foreground;
  Unlink(stored);
  Link(node);
  stored = std::move(node);
  if (begins_to_wait) {
    auto it = dependents_.find(uid);
    if (it != dependents_.end()) affected.insert(affected.end(), it->second.begin(), it->second.end());
  }
  return affected;
}

std::vector<std::string> OwnerGraph::Forget(const std::string& uid) {
  std::vector<std::string> affected;
  MutexLock lock(mutex_);
  auto node = nodes_.find(uid);
  if (node != nodes_.end()) {
    for (const auto& owner : node->second.owners) {
      auto it = nodes_.find(owner.uid());
      if (it != nodes_.end() && it->second.foreground) affected.push_back(owner.uid());
    }
    Unlink(node->second);
    nodes_.erase(node);
  }
  auto it = dependents_.find(uid);
  if (it != dependents_.end()) affected.insert(affected.end(), it->second.begin(), it->second.end());
  return affected;
}

std::optional<GraphNode> OwnerGraph::Find(const std::string& uid) const {
  MutexLock lock(mutex_);
  auto it = nodes_.find(uid);
  if (it == nodes_.end()) return std::nullopt;
  return it->second;
}

std::vector<GraphNode> OwnerGraph::Dependents(const std::string& uid) const {
  MutexLock lock(mutex_);
  std::vector<GraphNode> out;
  auto it = dependents_.find(uid);
  if (it == dependents_.end()) return out;
  for (const std::string& dependent : it->second) {
    auto node = nodes_.find(dependent);
    if (node != nodes_.end()) out.push_back(node->second);
  }
  return out;
}

bool OwnerGraph::AllOwnersStand(const GraphNode& node) const {
  MutexLock lock(mutex_);
  for (const auto& owner : node.owners) {
    auto it = nodes_.find(owner.uid());
    if (it == nodes_.end() || it->second.foreground) return false;
    // A reference with the right UID but wrong coordinates is checked through the API.
    if (it->second.name != owner.name() || it->second.info->kind != owner.kind()) return false;
    if (it->second.info->namespaced && it->second.ns != node.ns) return false;
  }
  return true;
}

bool AbsentOwners::Has(const std::string& ns, const metav1::OwnerReference& owner) const {
  MutexLock lock(mutex_);
  return keys_.count(KeyOf(ns, owner)) > 0;
}

void AbsentOwners::Add(const std::string& ns, const metav1::OwnerReference& owner) {
  MutexLock lock(mutex_);
  if (keys_.size() >= kMost) keys_.clear();
  keys_.insert(KeyOf(ns, owner));
}

}  // namespace keelson::controllers
