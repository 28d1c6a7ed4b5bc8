// What a StatefulSet does next: pure functions without I/O.
#pragma once

#include <chrono>
#include <map>

#include "controlplane/controllers/statefulset/identity.h"
#include "lib/base/clock.h"

namespace keelson::controllers {

// A set and its pods, by ordinal.
struct SetView {
  appsv1::StatefulSet set;
  std::string current, update;              // names of revisions
  std::map<int32_t, PodPointer> replicas;   // that the set wants; without those that there are not
  std::map<int32_t, PodPointer> condemned;  // beyond them
  WallTime now;
};
SetView ViewOf(const appsv1::StatefulSet& set, const PodPointers& pods, std::string current,
               std::string update, WallTime now);

// Done in this order, each list in its own; with OrderedReady there is at most one pod in all of them but
// `tend` and `settle`.
struct SetPlan {
  PodPointers tend;             // identity and claims are looked after
  PodPointers restart;          // ended: removed, and made again once they are gone
  std::vector<int32_t> create;  // ordinals
  PodPointers settle;           // condemned: their claims get the owners they are to go with
  PodPointers remove;           // condemned
  PodPointers replace;          // of an old revision
  std::optional<std::chrono::nanoseconds> again;  // a pod becomes available then
};
SetPlan PlanSet(const SetView& view);

// The name of the revision that a new pod is made of.
const std::string& RevisionAt(const SetView& view, int32_t ordinal);
// How many pods a rolling update may have unavailable; at least 1.
int32_t MaxUnavailable(const appsv1::StatefulSet& set);

// `replaced`: pods that were removed to be updated.
appsv1::StatefulSetStatus NewStatus(const SetView& view, const PodPointers& replaced);

}  // namespace keelson::controllers
