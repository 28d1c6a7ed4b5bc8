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

AffinityCounts::AffinityCounts(std::shared_ptr<const PodClass> pod_class, int32_t hard_weight,
                               bool ignore_others_preferred)
    : class_(std::move(pod_class)),
      hard_weight_(hard_weight),
      ignore_others_preferred_(ignore_others_preferred) {}

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
  effect.company = AllMatch(class_->affinity, other, namespaces);
  for (size_t i = 0; i < class_->anti_affinity.size(); ++i) {
    if (class_->anti_affinity[i].Matches(other, namespaces)) effect.apart |= uint64_t{1} << i;
  }
  for (const AffinityTerm& term : class_->preferred) {
    if (term.Matches(other, namespaces)) effect.scores.emplace_back(term.key, term.weight);
  }
  for (const AffinityTerm& term : other.anti_affinity) {
    if (term.Matches(*class_, namespaces)) effect.against.push_back(term.key);
  }
  if (hard_weight_ > 0) {
    for (const AffinityTerm& term : other.affinity) {
      if (term.Matches(*class_, namespaces)) effect.scores.emplace_back(term.key, hard_weight_);
    }
  }
  if (!ignore_others_preferred_ || !class_->preferred.empty()) {
    for (const AffinityTerm& term : other.preferred) {
      if (term.Matches(*class_, namespaces)) effect.scores.emplace_back(term.key, term.weight);
    }
  }
  return effect;
}

void AffinityCounts::Move(const PodClass& other, uint32_t slot, int by) {
  const Effect& effect = EffectOf(other);
  if (effect.Nothing() || !snapshot_->nodes[slot].facts) return;
  if (effect.company) {
    for (Column& column : company_) {
      column.Add(slot, by);
      if (column.topology->domain[slot] != 0) companions_ += by;
    }
  }
  for (size_t i = 0; effect.apart >> i != 0; ++i) {
    if (effect.apart >> i & 1) apart_[i].Add(slot, by);
  }
  for (uint32_t key : effect.against) {
    Column& column = ColumnOf(against_, key);
    column.Add(slot, by);
    if (column.topology->domain[slot] != 0) unwelcome_ += by;
  }
  for (const auto& [key, weight] : effect.scores) ColumnOf(scores_, key).Add(slot, weight * by);
}

void AffinityCounts::Count(const ClassPlacement& placement) {
  if (EffectOf(*placement.pod_class).Nothing()) return;
  for (const auto& [slot, count] : placement.by_slot) Move(*placement.pod_class, slot, count);
}

void AffinityCounts::Rebuild() {
  company_.clear();
  apart_.clear();
  against_.clear();
  scores_.clear();
  companions_ = unwelcome_ = 0;
  if (namespaces_epoch_ != snapshot_->namespaces_epoch()) effects_.clear();
  company_for_itself_ = AllMatch(class_->affinity, *class_, snapshot_->namespaces());
  for (const AffinityTerm& term : class_->affinity) company_.push_back({&snapshot_->Column(term.key), {}});
  for (const AffinityTerm& term : class_->anti_affinity) apart_.push_back({&snapshot_->Column(term.key), {}});
  // Others can mean something by the terms of this class, in the namespaces that these name, or by their own.
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
      Move(*placement.pod_class, placement.slot, placement.by);
    }
  }
  places_epoch_ = snapshot.places_epoch();
  namespaces_epoch_ = snapshot.namespaces_epoch();
  position_ = snapshot.log_end();
}

bool AffinityCounts::Together(uint32_t slot) const {
  bool company = true;
  for (const Column& column : company_) {
    if (column.topology->domain[slot] == 0) return false;
    company = company && column.At(slot) > 0;
  }
  // The first of its kind need not wait for others.
  return company || (companions_ == 0 && company_for_itself_);
}

bool AffinityCounts::Apart(uint32_t slot) const {
  return std::none_of(apart_.begin(), apart_.end(),
                      [&](const Column& column) { return column.At(slot) > 0; });
}

bool AffinityCounts::Welcome(uint32_t slot) const {
  return std::none_of(against_.begin(), against_.end(),
                      [&](const Column& column) { return column.At(slot) > 0; });
}

int64_t AffinityCounts::Score(uint32_t slot) const {
  int64_t score = 0;
  for (const Column& column : scores_) score += column.At(slot);
  return score;
}

}  // namespace keelson::scheduler
