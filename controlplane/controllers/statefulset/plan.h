// The next steps of a StatefulSet. Pure functions.
#pragma once

#include <chrono>
#include <map>

#include "controlplane/controllers/statefulset/identity.h"
#include "lib/base/clock.h"

namespace keelson::controllers {

// A StatefulSet and its pods by ordinal.
struct SetView {
  appsv1::StatefulSet set;
  std::string current, update;              // names of revisions
  std::map<int32_t, PodPointer> replicas;   // existing pods in the wanted range
  std::map<int32_t, PodPointer> condemned;  // pods outside the wanted range
  WallTime now;
};
SetView ViewOf(const appsv1::StatefulSet& set, const PodPointers& pods, std::string current,
               std::string update, WallTime now);

// Actions in order of execution. With OrderedReady all lists together name at most one pod, except `tend` and
// `settle`.
struct SetPlan {
  PodPointers tend;             // update identity and claims
  PodPointers restart;          // ended pods: deleted now, created again once they are gone
  std::vector<int32_t> create;  // ordinals
  PodPointers settle;           // condemned pods: update the owner references of their claims
  PodPointers remove;           // condemned pods to delete
  PodPointers replace;          // pods of an old revision to delete
  std::optional<std::chrono::nanoseconds> again;  // time until a pod becomes available
};
SetPlan PlanSet(const SetView& view);

// The name of the revision for a new pod.
const std::string& RevisionAt(const SetView& view, int32_t ordinal);
// spec.updateStrategy.rollingUpdate.maxUnavailable; at least 1.
int32_t MaxUnavailable(const appsv1::StatefulSet& set);

// `replaced`: pods that this sync deleted for an update.
appsv1::StatefulSetStatus NewStatus(const SetView& view, const PodPointers& replaced);

}  // namespace keelson::controllers
