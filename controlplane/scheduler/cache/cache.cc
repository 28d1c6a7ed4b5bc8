#include "controlplane/scheduler/cache/cache.h"

namespace keelson::scheduler {

using Kind = Change::Kind;

uint32_t Cache::SlotOf(std::string_view node) {
  const auto [it, added] = slots_.try_emplace(std::string(node), static_cast<uint32_t>(nodes_.size()));
  if (!added) return it->second;
  if (!free_slots_.empty()) {
    it->second = free_slots_.back();
    free_slots_.pop_back();
  } else {
    nodes_.emplace_back();
  }
  nodes_[it->second].name = node;
  return it->second;
}

void Cache::FreeIfUnused(uint32_t slot) {
  Slot& node = nodes_[slot];
  if (node.exists || node.users > 0) return;
  slots_.erase(node.name);
  node = Slot();
  free_slots_.push_back(slot);
  Log({.kind = Kind::kFree, .slot = slot});
}

void Cache::SetNode(std::shared_ptr<const NodeFacts> facts) {
  MutexLock lock(mutex_);
  const uint32_t slot = SlotOf(facts->name);
  nodes_[slot].exists = true;
  Log({.kind = Kind::kFacts, .slot = slot, .facts = std::move(facts)});
}

void Cache::RemoveNode(std::string_view name) {
  MutexLock lock(mutex_);
  const auto it = slots_.find(std::string(name));
  if (it == slots_.end() || !nodes_[it->second].exists) return;
  const uint32_t slot = it->second;
  nodes_[slot].exists = false;
  Log({.kind = Kind::kFacts, .slot = slot});
  FreeIfUnused(slot);
}

void Cache::SetNamespace(const std::string& name, std::shared_ptr<const api::LabelMap> labels) {
  MutexLock lock(mutex_);
  Log({.kind = Kind::kNamespace, .ns = name, .labels = std::move(labels)});
}

void Cache::Remove(std::unordered_map<std::string, Placed>::iterator it) {
  const uint32_t slot = it->second.slot;
  Log({.kind = Kind::kRemovePod, .slot = slot, .pod = it->second.pod});
  --nodes_[slot].users;
  assumed_ -= it->second.assumed;
  pods_.erase(it);
  FreeIfUnused(slot);
}

PodPtr Cache::SetPod(PodPtr pod) {
  MutexLock lock(mutex_);
  PodPtr before;
  Unnominate(pod->key);
  const auto known = pods_.find(pod->key);
  if (known != pods_.end()) {
    Placed& placed = known->second;
    before = placed.pod;
    if (nodes_[placed.slot].name == pod->node_name && before->uid == pod->uid &&
        before->shape == pod->shape && before->pod_class == pod->pod_class &&
        before->requests == pod->requests) {
      Log({.kind = Kind::kReplacePod, .slot = placed.slot, .pod = pod});
      placed.pod = std::move(pod);
      assumed_ -= placed.assumed;
      placed.assumed = false;
      return before;
    }
    Remove(known);
  }
  const uint32_t slot = SlotOf(pod->node_name);
  ++nodes_[slot].users;
  Log({.kind = Kind::kAddPod, .slot = slot, .pod = pod});
  std::string key = pod->key;
  pods_.insert_or_assign(std::move(key), Placed{std::move(pod), slot, false});
  return before;
}

PodPtr Cache::RemovePod(std::string_view key) {
  MutexLock lock(mutex_);
  Unnominate(std::string(key));
  const auto it = pods_.find(std::string(key));
  if (it == pods_.end()) return nullptr;
  PodPtr pod = it->second.pod;
  Remove(it);
  return pod;
}

bool Cache::AssumePod(PodPtr pod, std::string_view node) {
  MutexLock lock(mutex_);
  if (pods_.contains(pod->key)) return false;
  Unnominate(pod->key);
  const uint32_t slot = SlotOf(node);
  ++nodes_[slot].users;
  Log({.kind = Kind::kAddPod, .slot = slot, .pod = pod});
  std::string key = pod->key;
  pods_.emplace(std::move(key), Placed{std::move(pod), slot, true});
  ++assumed_;
  return true;
}

void Cache::ForgetPod(std::string_view key) {
  MutexLock lock(mutex_);
  const auto it = pods_.find(std::string(key));
  if (it != pods_.end() && it->second.assumed) Remove(it);
}

bool Cache::IsAssumedPod(std::string_view key) const {
  MutexLock lock(mutex_);
  const auto it = pods_.find(std::string(key));
  return it != pods_.end() && it->second.assumed;
}

bool Cache::Holds(const PodInfo& pod) const {
  MutexLock lock(mutex_);
  const auto it = pods_.find(pod.key);
  return it != pods_.end() && it->second.pod->uid == pod.uid;
}

void Cache::Unnominate(const std::string& key) {
  const auto it = nominated_.find(key);
  if (it == nominated_.end()) return;
  const uint32_t slot = it->second.second;
  Log({.kind = Kind::kUnnominate, .slot = slot, .pod = it->second.first});
  --nodes_[slot].users;
  nominated_.erase(it);
  FreeIfUnused(slot);
}

void Cache::Nominate(const PodPtr& pod, std::string_view node) {
  MutexLock lock(mutex_);
  const auto known = nominated_.find(pod->key);
  if (known != nominated_.end() && nodes_[known->second.second].name == node &&
      known->second.first->uid == pod->uid) {
    return;
  }
  Unnominate(pod->key);
  if (node.empty() || pods_.contains(pod->key)) return;
  const uint32_t slot = SlotOf(node);
  ++nodes_[slot].users;
  Log({.kind = Kind::kNominate, .slot = slot, .pod = pod});
  nominated_.emplace(pod->key, std::pair(pod, slot));
}

std::string Cache::NominatedNode(std::string_view key) const {
  MutexLock lock(mutex_);
  const auto it = nominated_.find(std::string(key));
  return it == nominated_.end() ? "" : nodes_[it->second.second].name;
}

void Cache::UpdateSnapshot(Snapshot& snapshot) {
  std::vector<Change> changes;
  {
    MutexLock lock(mutex_);
    changes.swap(changes_);
  }
  for (const Change& change : changes) snapshot.Apply(change);
}

size_t Cache::node_count() const {
  MutexLock lock(mutex_);
  size_t count = 0;
  for (const Slot& node : nodes_) count += node.exists;
  return count;
}

size_t Cache::pod_count() const {
  MutexLock lock(mutex_);
  return pods_.size();
}

size_t Cache::assumed_count() const {
  MutexLock lock(mutex_);
  return assumed_;
}

}  // namespace keelson::scheduler
