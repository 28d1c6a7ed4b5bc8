#include "controlplane/scheduler/cache/snapshot.h"

#include <algorithm>

namespace keelson::scheduler {

namespace {

// The length of the log of placements. Counts that are further behind are computed again.
constexpr size_t kPlacements = 16384;

}  // namespace

const NodeInfo* Snapshot::Find(std::string_view name) const {
  const auto it = slots.find(std::string(name));
  return it == slots.end() ? nullptr : &nodes[it->second];
}

void Snapshot::Apply(const Change& change) {
  if (change.kind == Change::Kind::kNamespace) {
    if (change.labels) {
      namespaces_[change.ns] = *change.labels;
    } else {
      namespaces_.erase(change.ns);
    }
    ++namespaces_epoch_;
    return;
  }
  if (change.slot >= nodes.size()) nodes.resize(change.slot + 1);
  NodeInfo& node = nodes[change.slot];
  node.slot = change.slot;
  switch (change.kind) {
    case Change::Kind::kFacts:
      SetFacts(node, change.facts);
      break;
    case Change::Kind::kFree:
      node = NodeInfo();
      node.slot = change.slot;
      break;
    case Change::Kind::kAddPod:
      node.AddPod(change.pod);
      Place(change.pod, change.slot, 1);
      break;
    case Change::Kind::kRemovePod:
      node.RemovePod(*change.pod);
      Place(change.pod, change.slot, -1);
      break;
    case Change::Kind::kReplacePod:
      // Nothing that filters and scores read has changed, so the generation stays. Most are pods that were
      // assumed and are confirmed now: the search starts at the latest.
      for (auto it = node.pods.rbegin(); it != node.pods.rend(); ++it) {
        if ((*it)->key != change.pod->key) continue;
        *it = change.pod;
        break;
      }
      return;
    case Change::Kind::kNominate:
      Nominate(node, change.pod);
      break;
    case Change::Kind::kUnnominate:
      Unnominate(node, *change.pod);
      break;
    case Change::Kind::kNamespace:
      break;
  }
  Touch(node);
}

void Snapshot::Nominate(NodeInfo& node, const PodPtr& pod) {
  nominated_nodes_ += node.nominated.empty();
  nominated_with_anti_affinity_ += !pod->pod_class->anti_affinity.empty();
  node.nominated.push_back(pod);
}

void Snapshot::Unnominate(NodeInfo& node, const PodInfo& pod) {
  const auto it = std::find_if(node.nominated.begin(), node.nominated.end(),
                               [&](const PodPtr& other) { return other->key == pod.key; });
  if (it == node.nominated.end()) return;
  nominated_with_anti_affinity_ -= !(*it)->pod_class->anti_affinity.empty();
  node.nominated.erase(it);
  nominated_nodes_ -= node.nominated.empty();
}

void Snapshot::SetFacts(NodeInfo& node, std::shared_ptr<const NodeFacts> facts) {
  if (!facts || !node.facts || node.facts->name != facts->name || !node.facts->SamePlace(*facts)) {
    ++places_epoch_;
  }
  if (!facts || !node.facts || node.facts->images != facts->images) ++images_epoch_;
  if (node.facts) {
    CountImages(*node.facts, -1);
    // Another slot may have this name by now.
    const auto it = slots.find(node.facts->name);
    if (it != slots.end() && it->second == node.slot) slots.erase(it);
  }
  node.facts = std::move(facts);
  node.allocatable = node.facts ? node.facts->allocatable : Resources();
  if (node.facts) {
    CountImages(*node.facts, 1);
    slots[node.facts->name] = node.slot;
  }
  for (const auto& [key, column] : columns_) FillColumn(*column, node.slot);
}

void Snapshot::CountImages(const NodeFacts& facts, int by) {
  for (const auto& [image, size] : facts.images) {
    size_t& count = images_[image];
    count += static_cast<size_t>(by);
    if (count == 0) images_.erase(image);
  }
}

size_t Snapshot::NodesWithImage(const std::string& image) const {
  const auto it = images_.find(image);
  return it == images_.end() ? 0 : it->second;
}

void Snapshot::FillColumn(TopologyColumn& column, uint32_t slot) const {
  if (column.domain.size() <= slot) column.domain.resize(slot + 1);
  const NodeFacts* facts = nodes[slot].facts.get();
  const std::string* value = facts ? facts->labels.Find(column.label) : nullptr;
  if (!value) {
    column.domain[slot] = 0;
  } else {
    column.domain[slot] =
        column.ids.try_emplace(*value, static_cast<uint32_t>(column.ids.size() + 1)).first->second;
  }
}

const TopologyColumn& Snapshot::Column(uint32_t key) const {
  std::unique_ptr<TopologyColumn>& column = columns_[key];
  if (!column) {
    column = std::make_unique<TopologyColumn>();
    column->key = key;
    column->label = words_.topology_keys.Name(key);
    for (uint32_t slot = 0; slot < nodes.size(); ++slot) FillColumn(*column, slot);
  }
  if (column->domain.size() < nodes.size()) column->domain.resize(nodes.size());
  return *column;
}

const Snapshot::ClassMap* Snapshot::ClassesIn(const std::string& ns) const {
  const auto it = classes_.find(ns);
  return it == classes_.end() ? nullptr : &it->second;
}

int32_t Snapshot::ClaimUsers(const std::string& claim) const {
  const auto it = claim_users_.find(claim);
  return it == claim_users_.end() ? 0 : it->second;
}

void Snapshot::Place(const PodPtr& pod, uint32_t slot, int by) {
  if (pod->volumes) {
    for (const PodVolumes::Claim& claim : pod->volumes->claims) {
      const auto it = claim_users_.try_emplace(pod->ns + "/" + claim.name, 0).first;
      it->second += by;
      if (it->second == 0) claim_users_.erase(it);
    }
  }
  const std::shared_ptr<const PodClass>& cls = pod->pod_class;
  log_.push_back({cls, slot, by});
  if (log_.size() > kPlacements) {
    log_.pop_front();
    ++log_begin_;
  }
  ClassMap& in_namespace = classes_[cls->ns];
  const auto [it, added] = in_namespace.try_emplace(cls->id);
  if (added) {
    it->second.pod_class = cls;
    if (cls->HasTerms()) with_terms_[cls->id] = &it->second;
  }
  const auto at = it->second.by_slot.try_emplace(slot, 0).first;
  at->second += by;
  if (at->second != 0) return;
  it->second.by_slot.erase(at);
  if (!it->second.by_slot.empty()) return;
  with_terms_.erase(cls->id);
  in_namespace.erase(it);
  if (in_namespace.empty()) classes_.erase(cls->ns);
}

}  // namespace keelson::scheduler
