#include "controlplane/scheduler/cache/affinity_counts.h"

#include <algorithm>
#include <set>

namespace keelson::scheduler {

namespace {

constexpr size_t kClasses = 4096;  // remembered at once

bool AllMatch(const std::vector<AffinityTerm>& terms, const PodClass& pod,
              const NamespaceLabels& namespaces) {
  return !terms.empty() && std::all_of(terms.begin(), terms.end(), [&](const AffinityTerm& term) {
    return term.Matches(pod, namespaces);
  });
}

}  // namespace

AffinityCounts::AffinityCounts(std::shared_ptr<const PodClass> pod_class, int32_t hard_pod_affinity_weight,
                               bool ignore_preferred_terms_of_existing_pods)
    : class_(std::move(pod_class)),
      hard_pod_affinity_weight_(hard_pod_affinity_weight),
      ignore_preferred_terms_of_existing_pods_(ignore_preferred_terms_of_existing_pods) {}

void AffinityCounts::Column::Add(uint32_t slot, int64_t by) {
  const uint32_t domain = topology->domain[slot];
  if (domain == 0) return;
  if (domain >= by_domain.size()) by_domain.resize(topology->domains());
  by_domain[domain] += by;
}

int64_t AffinityCounts::Column::At(uint32_t slot) const {
  const uint32_t domain = topology->domain[slot];
  return domain == 0 || domain >= by_domain.size() ? 0 : by_domain[domain];
}

AffinityCounts::Column& AffinityCounts::ColumnOf(std::vector<Column>& columns, uint32_t key) {
  for (Column& column : columns) {
    if (column.topology->key == key) return column;
  }
  return columns.emplace_back(Column{&snapshot_->Column(key), {}});
}

const AffinityCounts::Effect& AffinityCounts::EffectOf(const PodClass& other) {
  if (effects_.size() > kClasses) effects_.clear();
  const auto [it, added] = effects_.try_emplace(other.id);
  Effect& effect = it->second;
  if (!added) return effect;
  const NamespaceLabels& namespaces = snapshot_->namespaces();
  effect.affinity = AllMatch(class_->affinity, other, namespaces);
  for (size_t i = 0; i < class_->anti_affinity.size(); ++i) {
    if (class_->anti_affinity[i].Matches(other, namespaces)) effect.anti_affinity |= uint64_t{1} << i;
  }
  for (const AffinityTerm& term : class_->preferred) {
    if (term.Matches(other, namespaces)) effect.scores.emplace_back(term.key, term.weight);
  }
  for (const AffinityTerm& term : other.anti_affinity) {
    if (term.Matches(*class_, namespaces)) effect.existing_anti_affinity.push_back(term.key);
  }
  if (hard_pod_affinity_weight_ > 0) {
    for (const AffinityTerm& term : other.affinity) {
      if (term.Matches(*class_, namespaces)) effect.scores.emplace_back(term.key, hard_pod_affinity_weight_);
    }
  }
  if (!ignore_preferred_terms_of_existing_pods_ || !class_->preferred.empty()) {
    for (const AffinityTerm& term : other.preferred) {
      if (term.Matches(*class_, namespaces)) effect.scores.emplace_back(term.key, term.weight);
    }
  }
  return effect;
}

void AffinityCounts::UpdateWithPod(const PodClass& other, uint32_t slot, int by) {
  const Effect& effect = EffectOf(other);
  if (effect.empty() || !snapshot_->nodes[slot].facts) return;
  if (effect.affinity) {
    for (Column& column : affinity_counts_) {
      column.Add(slot, by);
      if (column.topology->domain[slot] != 0) affinity_sum_ += by;
    }
  }
  for (size_t i = 0; effect.anti_affinity >> i != 0; ++i) {
    if (effect.anti_affinity >> i & 1) anti_affinity_counts_[i].Add(slot, by);
  }
  for (uint32_t key : effect.existing_anti_affinity) {
    Column& column = ColumnOf(existing_anti_affinity_counts_, key);
    column.Add(slot, by);
    if (column.topology->domain[slot] != 0) existing_anti_affinity_sum_ += by;
  }
  for (const auto& [key, weight] : effect.scores) ColumnOf(topology_score_, key).Add(slot, weight * by);
}

void AffinityCounts::Count(const ClassPlacement& placement) {
  if (EffectOf(*placement.pod_class).empty()) return;
  for (const auto& [slot, count] : placement.by_slot) UpdateWithPod(*placement.pod_class, slot, count);
}

void AffinityCounts::Rebuild() {
  affinity_counts_.clear();
  anti_affinity_counts_.clear();
  existing_anti_affinity_counts_.clear();
  topology_score_.clear();
  affinity_sum_ = existing_anti_affinity_sum_ = 0;
  if (namespaces_epoch_ != snapshot_->namespaces_epoch()) effects_.clear();
  matches_itself_ = AllMatch(class_->affinity, *class_, snapshot_->namespaces());
  for (const AffinityTerm& term : class_->affinity) {
    affinity_counts_.push_back({&snapshot_->Column(term.key), {}});
  }
  for (const AffinityTerm& term : class_->anti_affinity) {
    anti_affinity_counts_.push_back({&snapshot_->Column(term.key), {}});
  }
  // Other pods count by the terms of this class, in the namespaces of these, or by their own terms.
  std::set<std::string> namespaces;
  for (const auto* terms : {&class_->affinity, &class_->anti_affinity, &class_->preferred}) {
    for (const AffinityTerm& term : *terms) {
      namespaces.insert(term.namespaces.begin(), term.namespaces.end());
      if (!term.by_namespace_labels) continue;
      for (const auto& [ns, classes] : snapshot_->classes()) namespaces.insert(ns);
    }
  }
  for (const std::string& ns : namespaces) {
    const Snapshot::ClassMap* classes = snapshot_->ClassesIn(ns);
    if (!classes) continue;
    for (const auto& [id, placement] : *classes) Count(placement);
  }
  for (const auto& [id, placement] : snapshot_->classes_with_terms()) {
    if (!namespaces.contains(placement->pod_class->ns)) Count(*placement);
  }
}

void AffinityCounts::Follow(const Snapshot& snapshot) {
  snapshot_ = &snapshot;
  if (places_epoch_ != snapshot.places_epoch() || namespaces_epoch_ != snapshot.namespaces_epoch() ||
      position_ < snapshot.log_begin()) {
    Rebuild();
  } else {
    for (; position_ < snapshot.log_end(); ++position_) {
      const Placement& placement = snapshot.At(position_);
      UpdateWithPod(*placement.pod_class, placement.slot, placement.by);
    }
  }
  places_epoch_ = snapshot.places_epoch();
  namespaces_epoch_ = snapshot.namespaces_epoch();
  position_ = snapshot.log_end();
}

bool AffinityCounts::SatisfiesPodAffinity(uint32_t slot) const {
  bool satisfied = true;
  for (const Column& column : affinity_counts_) {
    if (column.topology->domain[slot] == 0) return false;
    satisfied = satisfied && column.At(slot) > 0;
  }
  // The first pod of a group that has affinity to itself fits anywhere.
  return satisfied || (affinity_sum_ == 0 && matches_itself_);
}

bool AffinityCounts::SatisfiesPodAntiAffinity(uint32_t slot) const {
  return std::none_of(anti_affinity_counts_.begin(), anti_affinity_counts_.end(),
                      [&](const Column& column) { return column.At(slot) > 0; });
}

bool AffinityCounts::SatisfiesExistingPodsAntiAffinity(uint32_t slot) const {
  return std::none_of(existing_anti_affinity_counts_.begin(), existing_anti_affinity_counts_.end(),
                      [&](const Column& column) { return column.At(slot) > 0; });
}

int64_t AffinityCounts::Score(uint32_t slot) const {
  int64_t score = 0;
  for (const Column& column : topology_score_) score += column.At(slot);
  return score;
}

}  // namespace keelson::scheduler
