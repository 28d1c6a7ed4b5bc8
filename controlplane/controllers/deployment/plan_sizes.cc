// The size of each ReplicaSet of a Deployment.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "controlplane/controllers/deployment/plan.h"

namespace keelson::controllers {
namespace {

bool OlderFirst(const SetPointer& a, const SetPointer& b) {
  int64_t x = a->metadata().creation_timestamp().seconds(), y = b->metadata().creation_timestamp().seconds();
  return x != y ? x < y : a->metadata().name() < b->metadata().name();
}

SetPointers Sorted(SetPointers sets) {
  std::sort(sets.begin(), sets.end(), OlderFirst);
  return sets;
}

class Resizer {
 public:
  explicit Resizer(Sizes& sizes) : sizes_(sizes) {}
  int32_t Size(const appsv1::ReplicaSet& set) const {
    auto it = sizes_.find(set.metadata().name());
    return it == sizes_.end() ? set.spec().replicas() : it->second;
  }
  void Set(const appsv1::ReplicaSet& set, int32_t size) { sizes_[set.metadata().name()] = size; }

 private:
  Sizes& sizes_;
};

// Scales down unavailable replicas, oldest ReplicaSet first: they serve no traffic.
int32_t DropUnhealthy(const SetPointers& old_sets, int32_t limit, Resizer& sizes) {
  int32_t dropped = 0;
  for (const SetPointer& set : old_sets) {
    if (dropped >= limit) break;
    const int32_t unhealthy = set->spec().replicas() - set->status().available_replicas();
    if (set->spec().replicas() == 0 || unhealthy <= 0) continue;
    const int32_t count = std::min(limit - dropped, unhealthy);
    sizes.Set(*set, set->spec().replicas() - count);
    dropped += count;
  }
  return dropped;
}

// The available pods that a shrinking ReplicaSet keeps. Its status may still count pods that are about to go.
int32_t AvailableOf(const appsv1::ReplicaSet& set) {
  return std::min(set.status().available_replicas(), set.spec().replicas());
}

Sizes PlanOldSetsDown(const appsv1::Deployment& deployment, const SetPointer& new_set,
                      const SetPointers& sets) {
  Sizes plan;
  const SetPointers old_sets = Sorted(WithReplicas(Without(sets, new_set)));
  if (old_sets.empty()) return plan;
  const int32_t min_available = deployment.spec().replicas() - LimitsOf(deployment).unavailable;
  // The missing pods of the new ReplicaSet may still come, so they count against the scale-down.
  const int32_t new_unavailable = new_set ? new_set->spec().replicas() - AvailableOf(*new_set) : 0;
  const int32_t may_go = SumSpec(sets) - min_available - new_unavailable;
  if (may_go <= 0) return plan;
  Resizer sizes(plan);
  DropUnhealthy(old_sets, may_go, sizes);

  int32_t available_to_go = -min_available;
  for (const SetPointer& set : sets) available_to_go += AvailableOf(*set);
  for (const SetPointer& set : old_sets) {
    if (available_to_go <= 0) break;
    const int32_t size = sizes.Size(*set);
    const int32_t count = std::min(size, available_to_go);
    if (count <= 0) continue;
    sizes.Set(*set, size - count);
    available_to_go -= count;
  }
  return plan;
}

// The share of a ReplicaSet when the Deployment's size differs from the annotations.
int32_t Fraction(const appsv1::Deployment& deployment, const appsv1::ReplicaSet& set) {
  const int32_t size = set.spec().replicas();
  if (deployment.spec().replicas() == 0) return -size;
  int64_t before = 0;
  auto it = set.metadata().annotations().find(kMaxReplicas);
  if (it != set.metadata().annotations().end()) {
    std::from_chars(it->second.data(), it->second.data() + it->second.size(), before);
  }
  if (before <= 0) before = deployment.status().replicas();
  if (before <= 0) return 0;
  const double now = deployment.spec().replicas() + LimitsOf(deployment).surge;
  // Any client can write the annotation.
  constexpr double kMost = std::numeric_limits<int32_t>::max();
  return static_cast<int32_t>(std::min(std::round(size * now / static_cast<double>(before)), kMost)) - size;
}

// A ReplicaSet that was scaled down keeps its pods until its controller has deleted them.
int32_t SumHeld(const SetPointers& sets) {
  int32_t sum = 0;
  for (const SetPointer& set : sets) sum += std::max(set->spec().replicas(), set->status().replicas());
  return sum;
}

// True when the status reflects the current spec.
bool AllObserved(const SetPointers& sets) {
  return std::all_of(sets.begin(), sets.end(), [](const SetPointer& set) {
    return set->status().observed_generation() >= set->metadata().generation();
  });
}

// The surge limits pods, not sizes: a ReplicaSet grows into what the others leave, and does not grow while
// their pod count is unknown.
int32_t Grown(const appsv1::Deployment& deployment, const SetPointers& others, int32_t size) {
  if (!AllObserved(others)) return size;
  const int32_t wanted = deployment.spec().replicas();
  return std::max(size, std::min(wanted, wanted + LimitsOf(deployment).surge - SumHeld(others)));
}

// `change`: the replicas that all ReplicaSets together gain or lose; all change in the same direction.
Sizes ShareOut(const appsv1::Deployment& deployment, SetPointers sets, int32_t change) {
  // Largest first; among equal sizes the newer one grows, the older one shrinks.
  std::sort(sets.begin(), sets.end(), [&](const SetPointer& a, const SetPointer& b) {
    if (a->spec().replicas() != b->spec().replicas()) return a->spec().replicas() > b->spec().replicas();
    return change > 0 ? OlderFirst(b, a) : OlderFirst(a, b);
  });
  Sizes plan;
  int32_t left = change;
  for (const SetPointer& set : sets) {
    const int32_t share = std::clamp(Fraction(deployment, *set), std::min(left, 0), std::max(left, 0));
    plan[set->metadata().name()] = set->spec().replicas() + share;
    left -= share;
  }
  // The first one gets the rounding remainder; none loses more than it has.
  for (const SetPointer& set : sets) {
    int32_t& size = plan[set->metadata().name()];
    const int32_t taken = std::max(left, -size);
    size += taken;
    left -= taken;
  }
  return plan;
}

Sizes PlanProportional(const appsv1::Deployment& deployment, const SetPointers& all) {
  const int32_t wanted = deployment.spec().replicas();
  const int32_t allowed = wanted == 0 ? 0 : wanted + LimitsOf(deployment).surge;
  const int32_t change = allowed - SumSpec(all);
  // Proportional growth waits until surplus pods are gone; their deletion triggers the next sync.
  if (change > 0 && (!AllObserved(all) || SumHeld(all) > SumSpec(all))) return {};
  return ShareOut(deployment, WithReplicas(all), change);
}

// The single ReplicaSet with pods, or null when there are several.
SetPointer ActiveOrLatest(const SetPointer& new_set, const SetPointers& old_sets) {
  SetPointers all = old_sets;
  if (new_set) all.push_back(new_set);
  if (all.empty()) return nullptr;
  SetPointers active = WithReplicas(all);
  if (active.size() == 1) return active.front();
  if (!active.empty()) return nullptr;
  return new_set ? new_set : Sorted(old_sets).back();
}

bool IsSaturated(const appsv1::Deployment& deployment, const SetPointer& new_set) {
  if (!new_set) return false;
  auto it = new_set->metadata().annotations().find(kDesiredReplicas);
  const int32_t wanted = deployment.spec().replicas();
  return it != new_set->metadata().annotations().end() && it->second == std::to_string(wanted) &&
         new_set->spec().replicas() == wanted && new_set->status().available_replicas() == wanted;
}

}  // namespace

int32_t NewSetSize(const appsv1::Deployment& deployment, const SetPointers& old_sets, int32_t size) {
  if (deployment.spec().strategy().type() != "RollingUpdate") return deployment.spec().replicas();
  return Grown(deployment, old_sets, size);
}

Sizes PlanRollingUpdate(const appsv1::Deployment& deployment, const SetPointer& new_set,
                        const SetPointers& sets) {
  const int32_t wanted = deployment.spec().replicas();
  const int32_t size = new_set->spec().replicas();
  if (size > wanted) return {{new_set->metadata().name(), wanted}};
  // A ReplicaSet with surplus pods waits for their deletion: until then its pod count is too high.
  if (size < wanted && new_set->status().replicas() <= size) {
    const int32_t grown = NewSetSize(deployment, Without(sets, new_set), size);
    if (grown != size) return {{new_set->metadata().name(), grown}};
  }
  return PlanOldSetsDown(deployment, new_set, sets);
}

Sizes PlanScale(const appsv1::Deployment& deployment, const SetPointer& new_set,
                const SetPointers& old_sets) {
  SetPointers all = old_sets;
  if (new_set) all.push_back(new_set);
  if (SetPointer only = ActiveOrLatest(new_set, old_sets)) {
    const int32_t size = only->spec().replicas(), wanted = deployment.spec().replicas();
    const int32_t next = wanted > size ? Grown(deployment, Without(all, only), size) : wanted;
    if (next == size) return {};
    return {{only->metadata().name(), next}};
  }
  if (IsSaturated(deployment, new_set)) {
    Sizes plan;
    for (const SetPointer& set : WithReplicas(old_sets)) plan[set->metadata().name()] = 0;
    return plan;
  }
  if (deployment.spec().strategy().type() != "RollingUpdate") return {};
  return PlanProportional(deployment, all);
}

}  // namespace keelson::controllers
