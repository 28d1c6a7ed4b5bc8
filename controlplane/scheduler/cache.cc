#include "controlplane/scheduler/cache.h"

namespace keelson::scheduler {

size_t Cache::SlotOf(std::string_view node) {
  const auto [it, added] = slots_.try_emplace(std::string(node), nodes_.size());
  if (!added) return it->second;
  if (!free_slots_.empty()) {
    it->second = free_slots_.back();
    free_slots_.pop_back();
    slot_names_[it->second] = node;
  } else {
    nodes_.emplace_back();
    dirty_.push_back(false);
    slot_names_.emplace_back(node);
  }
  return it->second;
}

void Cache::Touch(size_t slot) {
  nodes_[slot].generation = ++generation_;
  if (dirty_[slot]) return;
  dirty_[slot] = true;
  dirty_slots_.push_back(slot);
}

void Cache::FreeIfUnused(size_t slot) {
  if (nodes_[slot].facts || nodes_[slot].used.pods > 0) return;
  slots_.erase(slot_names_[slot]);
  nodes_[slot] = NodeInfo();
  free_slots_.push_back(slot);
  Touch(slot);
}

std::shared_ptr<const NodeFacts> Cache::SetNode(std::shared_ptr<const NodeFacts> facts) {
  MutexLock lock(mutex_);
  const size_t slot = SlotOf(facts->name);
  NodeInfo& node = nodes_[slot];
  node.allocatable = facts->allocatable;
  std::swap(node.facts, facts);
  Touch(slot);
  return facts;
}

void Cache::RemoveNode(std::string_view name) {
  MutexLock lock(mutex_);
  const auto it = slots_.find(std::string(name));
  if (it == slots_.end()) return;
  const size_t slot = it->second;
  nodes_[slot].facts = nullptr;
  Touch(slot);
  FreeIfUnused(slot);
}

void Cache::Remove(std::unordered_map<std::string, Placed>::iterator it) {
  const size_t slot = it->second.slot;
  nodes_[slot].RemovePod(*it->second.pod);
  Touch(slot);
  pods_.erase(it);
  FreeIfUnused(slot);
}

void Cache::SetPod(PodPtr pod) {
  MutexLock lock(mutex_);
  const auto known = pods_.find(pod->key);
  if (known != pods_.end()) {
    Placed& placed = known->second;
    const bool same = slot_names_[placed.slot] == pod->node_name && placed.pod->uid == pod->uid &&
                      placed.pod->requests == pod->requests && placed.pod->ports == pod->ports;
    if (same) {
      // Nothing that counts has changed: the node, and all that was worked out for it, stays.
      placed.pod = std::move(pod);
      placed.assumed = false;
      return;
    }
    Remove(known);
  }
  const size_t slot = SlotOf(pod->node_name);
  nodes_[slot].AddPod(*pod);
  Touch(slot);
  std::string key = pod->key;
  pods_.insert_or_assign(std::move(key), Placed{std::move(pod), slot, false});
}

PodPtr Cache::RemovePod(std::string_view key) {
  MutexLock lock(mutex_);
  const auto it = pods_.find(std::string(key));
  if (it == pods_.end()) return nullptr;
  PodPtr pod = it->second.pod;
  Remove(it);
  return pod;
}

bool Cache::Assume(PodPtr pod, std::string_view node) {
  MutexLock lock(mutex_);
  if (pods_.contains(pod->key)) return false;
  const size_t slot = SlotOf(node);
  nodes_[slot].AddPod(*pod);
  Touch(slot);
  std::string key = pod->key;
  pods_.emplace(std::move(key), Placed{std::move(pod), slot, true});
  return true;
}

void Cache::Forget(std::string_view key) {
  MutexLock lock(mutex_);
  const auto it = pods_.find(std::string(key));
  if (it != pods_.end() && it->second.assumed) Remove(it);
}

bool Cache::IsAssumed(std::string_view key) const {
  MutexLock lock(mutex_);
  const auto it = pods_.find(std::string(key));
  return it != pods_.end() && it->second.assumed;
}

void Cache::Update(Snapshot& snapshot) {
  MutexLock lock(mutex_);
  snapshot.nodes.resize(nodes_.size());
  for (size_t slot : dirty_slots_) {
    NodeInfo& copy = snapshot.nodes[slot];
    const NodeInfo& node = nodes_[slot];
    if (copy.facts != node.facts) {
      if (copy.facts && (!node.facts || node.facts->name != copy.facts->name)) {
        // Another slot may have this name by now.
        const auto it = snapshot.slots.find(copy.facts->name);
        if (it != snapshot.slots.end() && it->second == slot) snapshot.slots.erase(it);
      }
      if (node.facts) snapshot.slots[node.facts->name] = slot;
    }
    copy = node;
    dirty_[slot] = false;
  }
  dirty_slots_.clear();
}

size_t Cache::node_count() const {
  MutexLock lock(mutex_);
  size_t count = 0;
  for (const NodeInfo& node : nodes_) count += node.facts != nullptr;
  return count;
}

size_t Cache::pod_count() const {
  MutexLock lock(mutex_);
  return pods_.size();
}

}  // namespace keelson::scheduler
