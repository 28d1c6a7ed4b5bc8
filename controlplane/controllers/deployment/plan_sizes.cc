// How many pods each ReplicaSet of a deployment should have.
#include <algorithm>
#include <charconv>
#include <cmath>

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

// Takes away, oldest set first, replicas that are not available: they serve nobody.
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

Sizes PlanOldSetsDown(const appsv1::Deployment& deployment, const SetPointer& new_set,
                      const SetPointers& sets) {
  Sizes plan;
  const SetPointers old_sets = Sorted(WithReplicas(Without(sets, new_set)));
  if (old_sets.empty()) return plan;
  const int32_t min_available = deployment.spec().replicas() - LimitsOf(deployment).unavailable;
  // Whatever the new set lacks may still come: those pods count against what may go.
  const int32_t new_unavailable =
      new_set ? new_set->spec().replicas() - new_set->status().available_replicas() : 0;
  const int32_t may_go = SumSpec(sets) - min_available - new_unavailable;
  if (may_go <= 0) return plan;
  Resizer sizes(plan);
  DropUnhealthy(old_sets, may_go, sizes);

  int32_t available_to_go = SumAvailable(sets) - min_available;
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

// A set's share when the deployment's size changes from what its annotations say.
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
  return static_cast<int32_t>(std::round(size * now / static_cast<double>(before))) - size;
}

int32_t Share(const appsv1::Deployment& deployment, const appsv1::ReplicaSet& set, int32_t to_add,
              int32_t added) {
  if (set.spec().replicas() == 0 || to_add == 0 || to_add == added) return 0;
  const int32_t fraction = Fraction(deployment, set), allowed = to_add - added;
  return to_add > 0 ? std::min(fraction, allowed) : std::max(fraction, allowed);
}

Sizes PlanProportional(const appsv1::Deployment& deployment, SetPointers sets) {
  const int32_t allowed =
      deployment.spec().replicas() > 0 ? deployment.spec().replicas() + LimitsOf(deployment).surge : 0;
  const int32_t to_add = allowed - SumSpec(sets);
  // The biggest first; of equal ones the newer grows and the older shrinks.
  std::sort(sets.begin(), sets.end(), [&](const SetPointer& a, const SetPointer& b) {
    if (a->spec().replicas() != b->spec().replicas()) return a->spec().replicas() > b->spec().replicas();
    return to_add > 0 ? OlderFirst(b, a) : OlderFirst(a, b);
  });
  Sizes plan;
  int32_t added = 0;
  for (const SetPointer& set : sets) {
    const int32_t share = Share(deployment, *set, to_add, added);
    plan[set->metadata().name()] = set->spec().replicas() + share;
    added += share;
  }
  if (!sets.empty() && to_add != 0) {
    int32_t& first = plan[sets.front()->metadata().name()];  // takes what rounding left over
    first = std::max(first + to_add - added, 0);
  }
  return plan;
}

// The one set that is all there is, or none when there are several with pods.
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

// A set that was made smaller has its pods until its controller has seen that and taken them away.
int32_t SumHeld(const SetPointers& sets) {
  int32_t sum = 0;
  for (const SetPointer& set : sets) sum += std::max(set->spec().replicas(), set->status().replicas());
  return sum;
}

// What sets say of their pods is of their present size.
bool AllObserved(const SetPointers& sets) {
  return std::all_of(sets.begin(), sets.end(), [](const SetPointer& set) {
    return set->status().observed_generation() >= set->metadata().generation();
  });
}

}  // namespace

int32_t NewSetSize(const appsv1::Deployment& deployment, const SetPointers& sets,
                   const appsv1::ReplicaSet& new_set) {
  const int32_t wanted = deployment.spec().replicas();
  if (deployment.spec().strategy().type() != "RollingUpdate") return wanted;
  const int32_t size = new_set.spec().replicas();
  // The limit is one of pods: there is no room while it is not known how many there are.
  if (!AllObserved(sets)) return size;
  const int32_t room = wanted + LimitsOf(deployment).surge - SumHeld(sets);
  return room <= 0 ? size : size + std::min(room, wanted - size);
}

Sizes PlanRollingUpdate(const appsv1::Deployment& deployment, const SetPointer& new_set,
                        const SetPointers& sets) {
  const int32_t wanted = deployment.spec().replicas();
  const int32_t size = new_set->spec().replicas();
  if (size > wanted) return {{new_set->metadata().name(), wanted}};
  if (size < wanted) {
    const int32_t grown = NewSetSize(deployment, sets, *new_set);
    if (grown != size) return {{new_set->metadata().name(), grown}};
  }
  return PlanOldSetsDown(deployment, new_set, sets);
}

Sizes PlanScale(const appsv1::Deployment& deployment, const SetPointer& new_set,
                const SetPointers& old_sets) {
  if (SetPointer only = ActiveOrLatest(new_set, old_sets)) {
    if (only->spec().replicas() == deployment.spec().replicas()) return {};
    return {{only->metadata().name(), deployment.spec().replicas()}};
  }
  if (IsSaturated(deployment, new_set)) {
    Sizes plan;
    for (const SetPointer& set : WithReplicas(old_sets)) plan[set->metadata().name()] = 0;
    return plan;
  }
  if (deployment.spec().strategy().type() != "RollingUpdate") return {};
  SetPointers all = old_sets;
  if (new_set) all.push_back(new_set);
  return PlanProportional(deployment, WithReplicas(all));
}

}  // namespace keelson::controllers
