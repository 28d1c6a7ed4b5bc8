#include "controlplane/scheduler/cache/spread_counts.h"

#include <algorithm>

namespace keelson::scheduler {

namespace {

constexpr size_t kClasses = 4096;  // remembered at once

}  // namespace

SpreadCounts::SpreadCounts(std::shared_ptr<const SpreadSpec> spec, bool hard) : spec_(std::move(spec)) {
  for (const SpreadConstraint& constraint : hard ? spec_->hard : spec_->soft) {
    ConstraintCounts& counts = constraints_.emplace_back();
    counts.constraint = &constraint;
    counts.by_slot = !hard && constraint.hostname;
  }
}

void SpreadCounts::ConstraintCounts::Add(uint32_t domain, int32_t by) {
  int32_t& count = match_num[domain];
  if (nodes[domain] == 0) return;
  --domains_with_match_num[static_cast<size_t>(count)];
  count += by;
  if (static_cast<size_t>(count) >= domains_with_match_num.size()) {
    domains_with_match_num.resize(2 * static_cast<size_t>(count) + 1);
  }
  ++domains_with_match_num[static_cast<size_t>(count)];
  min_match_num = std::min(min_match_num, count);
  while (domains_with_match_num[static_cast<size_t>(min_match_num)] == 0) ++min_match_num;
}

bool SpreadCounts::HasAllKeys(uint32_t slot) const {
  return std::all_of(constraints_.begin(), constraints_.end(),
                     [&](const ConstraintCounts& counts) { return counts.column->domain[slot] != 0; });
}

uint32_t SpreadCounts::MatchingConstraints(const PodClass& pod_class) {
  if (pod_class.ns != spec_->ns || pod_class.terminating) return 0;
  if (matching_.size() > kClasses) matching_.clear();
  const auto [it, added] = matching_.try_emplace(pod_class.id, 0);
  if (!added) return it->second;
  for (size_t i = 0; i < constraints_.size(); ++i) {
    if (constraints_[i].constraint->selector.Matches(pod_class.labels)) it->second |= 1u << i;
  }
  return it->second;
}

void SpreadCounts::UpdateWithPod(const PodClass& pod_class, uint32_t slot, int by) {
  const uint32_t matching = MatchingConstraints(pod_class);
  for (size_t i = 0; matching >> i != 0; ++i) {
    ConstraintCounts& counts = constraints_[i];
    if (matching >> i & 1 && slot < counts.eligible.size() && counts.eligible[slot]) {
      counts.Add(counts.DomainOf(slot), by);
    }
  }
}

void SpreadCounts::CountNodes(const Snapshot& snapshot) {
  for (uint32_t slot = 0; slot < snapshot.nodes.size(); ++slot) {
    const NodeFacts* facts = snapshot.nodes[slot].facts.get();
    if (!facts || (spec_->needs_all_keys && !HasAllKeys(slot))) continue;
    const bool wanted = spec_->affinity.IsEverything() || spec_->affinity.Matches(facts->view());
    const bool tolerated = !facts->hard_taints || !k8s::FindUntolerated(facts->taints, spec_->tolerations);
    for (ConstraintCounts& counts : constraints_) {
      const uint32_t domain = counts.DomainOf(slot);
      if (domain == 0 || (counts.constraint->honor_affinity && !wanted)) continue;
      if (counts.constraint->honor_taints && !tolerated) continue;
      counts.eligible[slot] = true;
      if (counts.nodes[domain]++ == 0) ++counts.domains;
    }
  }
}

void SpreadCounts::Rebuild(const Snapshot& snapshot) {
  const size_t slots = snapshot.nodes.size();
  for (ConstraintCounts& counts : constraints_) counts.column = &snapshot.Column(counts.constraint->key);
  for (ConstraintCounts& counts : constraints_) {
    const size_t domains = counts.by_slot ? slots + 1 : counts.column->domains();
    counts.match_num.assign(domains, 0);
    counts.nodes.assign(domains, 0);
    counts.eligible.assign(slots, false);
    counts.domains = counts.min_match_num = 0;
  }
  CountNodes(snapshot);
  for (ConstraintCounts& counts : constraints_) counts.domains_with_match_num.assign(1, counts.domains);
  const Snapshot::ClassMap* classes = snapshot.ClassesIn(spec_->ns);
  if (!classes) return;
  for (const auto& [id, placement] : *classes) {
    if (MatchingConstraints(*placement.pod_class) == 0) continue;
    for (const auto& [slot, count] : placement.by_slot) UpdateWithPod(*placement.pod_class, slot, count);
  }
}

void SpreadCounts::Follow(const Snapshot& snapshot) {
  if (places_epoch_ != snapshot.places_epoch() || position_ < snapshot.log_begin()) {
    Rebuild(snapshot);
  } else {
    for (; position_ < snapshot.log_end(); ++position_) {
      const Placement& placement = snapshot.At(position_);
      UpdateWithPod(*placement.pod_class, placement.slot, placement.by);
    }
  }
  places_epoch_ = snapshot.places_epoch();
  position_ = snapshot.log_end();
}

}  // namespace keelson::scheduler
