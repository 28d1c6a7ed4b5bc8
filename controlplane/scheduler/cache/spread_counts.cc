#include "controlplane/scheduler/cache/spread_counts.h"

#include <algorithm>

namespace keelson::scheduler {

namespace {

constexpr size_t kClasses = 4096;  // remembered at once

}  // namespace

SpreadCounts::SpreadCounts(std::shared_ptr<const SpreadSpec> spec, bool hard) : spec_(std::move(spec)) {
  for (const SpreadConstraint& constraint : hard ? spec_->hard : spec_->soft) {
    Of& of = constraints_.emplace_back();
    of.constraint = &constraint;
    of.by_slot = !hard && constraint.hostname;
  }
}

void SpreadCounts::Of::Add(uint32_t domain, int32_t by) {
  int32_t& count = pods[domain];
  if (nodes[domain] == 0) return;
  --domains_with[static_cast<size_t>(count)];
  count += by;
  if (static_cast<size_t>(count) >= domains_with.size())
    domains_with.resize(2 * static_cast<size_t>(count) + 1);
  ++domains_with[static_cast<size_t>(count)];
  fewest = std::min(fewest, count);
  while (domains_with[static_cast<size_t>(fewest)] == 0) ++fewest;
}

bool SpreadCounts::HasAllKeys(uint32_t slot) const {
  return std::all_of(constraints_.begin(), constraints_.end(),
                     [&](const Of& of) { return of.column->domain[slot] != 0; });
}

uint32_t SpreadCounts::Meant(const PodClass& pod_class) {
  if (pod_class.ns != spec_->ns || pod_class.terminating) return 0;
  if (meant_.size() > kClasses) meant_.clear();
  const auto [it, added] = meant_.try_emplace(pod_class.id, 0);
  if (!added) return it->second;
  for (size_t i = 0; i < constraints_.size(); ++i) {
    if (constraints_[i].constraint->selector.Matches(pod_class.labels)) it->second |= 1u << i;
  }
  return it->second;
}

void SpreadCounts::Move(const PodClass& pod_class, uint32_t slot, int by) {
  const uint32_t meant = Meant(pod_class);
  for (size_t i = 0; meant >> i != 0; ++i) {
    Of& of = constraints_[i];
    if (meant >> i & 1 && slot < of.eligible.size() && of.eligible[slot]) of.Add(of.DomainOf(slot), by);
  }
}

void SpreadCounts::CountNodes(const Snapshot& snapshot) {
  for (uint32_t slot = 0; slot < snapshot.nodes.size(); ++slot) {
    const NodeFacts* facts = snapshot.nodes[slot].facts.get();
    if (!facts || (spec_->needs_all_keys && !HasAllKeys(slot))) continue;
    const bool wanted = spec_->affinity.IsEverything() || spec_->affinity.Matches(facts->view());
    const bool tolerated = !facts->hard_taints || !k8s::FindUntolerated(facts->taints, spec_->tolerations);
    for (Of& of : constraints_) {
      const uint32_t domain = of.DomainOf(slot);
      if (domain == 0 || (of.constraint->honor_affinity && !wanted)) continue;
      if (of.constraint->honor_taints && !tolerated) continue;
      of.eligible[slot] = true;
      if (of.nodes[domain]++ == 0) ++of.domains;
    }
  }
}

void SpreadCounts::Rebuild(const Snapshot& snapshot) {
  const size_t slots = snapshot.nodes.size();
  for (Of& of : constraints_) of.column = &snapshot.Column(of.constraint->key);
  for (Of& of : constraints_) {
    const size_t domains = of.by_slot ? slots + 1 : of.column->domains();
    of.pods.assign(domains, 0);
    of.nodes.assign(domains, 0);
    of.eligible.assign(slots, false);
    of.domains = of.fewest = 0;
  }
  CountNodes(snapshot);
  for (Of& of : constraints_) of.domains_with.assign(1, of.domains);
  const Snapshot::ClassMap* classes = snapshot.ClassesIn(spec_->ns);
  if (!classes) return;
  for (const auto& [id, placement] : *classes) {
    if (Meant(*placement.pod_class) == 0) continue;
    for (const auto& [slot, count] : placement.by_slot) Move(*placement.pod_class, slot, count);
  }
}

void SpreadCounts::Follow(const Snapshot& snapshot) {
  if (places_epoch_ != snapshot.places_epoch() || position_ < snapshot.log_begin()) {
    Rebuild(snapshot);
  } else {
    for (; position_ < snapshot.log_end(); ++position_) {
      const Placement& placement = snapshot.At(position_);
      Move(*placement.pod_class, placement.slot, placement.by);
    }
  }
  places_epoch_ = snapshot.places_epoch();
  position_ = snapshot.log_end();
}

}  // namespace keelson::scheduler
