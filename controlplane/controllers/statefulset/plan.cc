#include "controlplane/controllers/statefulset/plan.h"

#include <algorithm>

#include "controlplane/controllers/common/availability.h"
#include "controlplane/controllers/common/history.h"
#include "lib/k8s/int_or_string.h"
#include "lib/k8s/pods/pod_util.h"

namespace keelson::controllers {
namespace {

bool IsOrdered(const SetView& view) { return view.set.spec().pod_management_policy() != "Parallel"; }

std::string RevisionOf(const corev1::Pod& pod) {
  const auto found = pod.metadata().labels().find(kPodRevisionLabel);
  return found == pod.metadata().labels().end() ? "" : found->second;
}

bool IsRunningAndReady(const corev1::Pod& pod) {
  return pod.status().phase() == "Running" && k8s::IsReady(pod);
}

bool IsRunningAndAvailable(const SetView& view, const corev1::Pod& pod) {
  return IsRunningAndReady(pod) && k8s::IsAvailable(pod, view.set.spec().min_ready_seconds(), view.now);
}

bool IsUnavailable(const SetView& view, const corev1::Pod& pod) {
  return k8s::IsTerminating(pod) || !IsRunningAndAvailable(view, pod);
}

// False: with OrderedReady the plan ends here.
bool PlanReplica(const SetView& view, int32_t ordinal, SetPlan& plan) {
  const auto found = view.replicas.find(ordinal);
  if (found == view.replicas.end()) {
    plan.create.push_back(ordinal);
    return false;
  }
  const PodPointer& pod = found->second;
  if (k8s::IsTerminal(*pod)) {
    // In any terminal phase: an eviction or node restart looks like an exit.
    if (!k8s::IsTerminating(*pod)) plan.restart.push_back(pod);
    return false;
  }
  const bool available = IsRunningAndAvailable(view, *pod) && !k8s::IsTerminating(*pod);
  // A pending pod may lack a claim.
  if (available || !IsOrdered(view) || pod->status().phase() != "Running") plan.tend.push_back(pod);
  return available;
}

// True when all wanted pods are as far as the policy requires.
bool PlanReplicas(const SetView& view, SetPlan& plan) {
  const int64_t first = FirstOrdinal(view.set), end = first + view.set.spec().replicas();
  for (int64_t ordinal = first; ordinal < end; ++ordinal) {
    if (!PlanReplica(view, static_cast<int32_t>(ordinal), plan) && IsOrdered(view)) return false;
  }
  return true;
}

// Called only when all replicas are available, so the first unhealthy pod is a condemned one.
bool PlanCondemned(const SetView& view, SetPlan& plan) {
  PodPointer first_unhealthy;
  for (const auto& [ordinal, pod] : view.condemned) {
    plan.settle.push_back(pod);
    if (!first_unhealthy && IsUnavailable(view, *pod)) first_unhealthy = pod;
  }
  for (auto it = view.condemned.rbegin(); it != view.condemned.rend(); ++it) {
    const PodPointer& pod = it->second;
    if (!IsOrdered(view)) {
      if (!k8s::IsTerminating(*pod)) plan.remove.push_back(pod);
      continue;
    }
    if (k8s::IsTerminating(*pod)) return false;
    if (IsUnavailable(view, *pod) && pod != first_unhealthy) return false;
    plan.remove.push_back(pod);
    return false;
  }
  return true;
}

int32_t Partition(const appsv1::StatefulSet& set) {
  return set.spec().update_strategy().rolling_update().partition();
}

// One at a time from the highest ordinal; each waits until the previous one is available.
void PlanUpdate(const SetView& view, SetPlan& plan) {
  const int64_t first = FirstOrdinal(view.set), lowest = first + Partition(view.set);
  for (int64_t ordinal = first + view.set.spec().replicas() - 1; ordinal >= lowest; --ordinal) {
    const auto found = view.replicas.find(static_cast<int32_t>(ordinal));
    if (found == view.replicas.end()) return;
    const PodPointer& pod = found->second;
    if (RevisionOf(*pod) != view.update && !k8s::IsTerminating(*pod)) {
      plan.replace.push_back(pod);
      return;
    }
    if (IsUnavailable(view, *pod)) return;
  }
}

// Several at a time from the highest ordinal. Unavailable pods cost nothing: otherwise they would block the
// update that fixes them.
void PlanWideUpdate(const SetView& view, int32_t most, SetPlan& plan) {
  const int64_t first = FirstOrdinal(view.set), lowest = first + Partition(view.set);
  int32_t unavailable = view.set.spec().replicas() - static_cast<int32_t>(view.replicas.size());
  for (const auto& [ordinal, pod] : view.replicas) unavailable += IsUnavailable(view, *pod);
  for (auto it = view.replicas.rbegin(); it != view.replicas.rend() && it->first >= lowest; ++it) {
    const PodPointer& pod = it->second;
    if (RevisionOf(*pod) == view.update || k8s::IsTerminating(*pod)) continue;
    if (!IsUnavailable(view, *pod) && unavailable++ >= most) return;
    plan.replace.push_back(pod);
  }
}

// A pod that is deleted because it ended is not also deleted for the update.
void DropRestarting(SetPlan& plan) {
  std::erase_if(plan.replace, [&](const PodPointer& pod) {
    return std::find(plan.restart.begin(), plan.restart.end(), pod) != plan.restart.end();
  });
}

}  // namespace

SetView ViewOf(const appsv1::StatefulSet& set, const PodPointers& pods, std::string current,
               std::string update, WallTime now) {
  SetView view{set, std::move(current), std::move(update), {}, {}, now};
  for (const PodPointer& pod : pods) {
    const std::optional<int32_t> ordinal = OrdinalOf(set, *pod);
    if (ordinal) (InRange(set, *ordinal) ? view.replicas : view.condemned)[*ordinal] = pod;
  }
  return view;
}

SetPlan PlanSet(const SetView& view) {
  SetPlan plan;
  if (view.set.metadata().has_deletion_timestamp()) return plan;
  for (const auto* pods : {&view.replicas, &view.condemned}) {  // wait for both
    for (const auto& [ordinal, pod] : *pods) {
      if (IsRunningAndReady(*pod)) {
        Earliest(plan.again, UntilAvailable(*pod, view.set.spec().min_ready_seconds(), view.now));
      }
    }
  }
  if (!PlanReplicas(view, plan)) return plan;
  if (!PlanCondemned(view, plan)) return plan;
  if (view.set.spec().update_strategy().type() == "OnDelete") return plan;
  const int32_t most = MaxUnavailable(view.set);
  if (most > 1) {
    PlanWideUpdate(view, most, plan);
  } else {
    PlanUpdate(view, plan);
  }
  DropRestarting(plan);
  return plan;
}

const std::string& RevisionAt(const SetView& view, int32_t ordinal) {
  const appsv1::StatefulSetUpdateStrategy& strategy = view.set.spec().update_strategy();
  if (strategy.type() != "RollingUpdate") return view.update;
  const int64_t kept =
      strategy.has_rolling_update() ? Partition(view.set) : view.set.status().current_replicas();
  return ordinal < FirstOrdinal(view.set) + kept ? view.current : view.update;
}

int32_t MaxUnavailable(const appsv1::StatefulSet& set) {
  const appsv1::RollingUpdateStatefulSetStrategy& rolling = set.spec().update_strategy().rolling_update();
  if (!rolling.has_max_unavailable()) return 1;
  // Rounded down, although the field's description says up.
  Result<int64_t> most = k8s::ScaledValue(rolling.max_unavailable(), set.spec().replicas(), false);
  return most ? static_cast<int32_t>(std::max<int64_t>(*most, 1)) : 1;
}

appsv1::StatefulSetStatus NewStatus(const SetView& view, const PodPointers& replaced) {
  appsv1::StatefulSetStatus status;
  status.mutable_conditions()->CopyFrom(view.set.status().conditions());
  int32_t replicas = 0, ready = 0, available = 0, current = 0, updated = 0;
  for (const auto* pods : {&view.replicas, &view.condemned}) {
    for (const auto& [ordinal, pod] : *pods) {
      ++replicas;
      if (IsRunningAndReady(*pod)) ++ready;
      if (IsRunningAndAvailable(view, *pod)) ++available;
      if (k8s::IsTerminating(*pod)) continue;
      const bool going = std::find(replaced.begin(), replaced.end(), pod) != replaced.end();
      const std::string revision = RevisionOf(*pod);
      if (revision == view.current && !going) ++current;
      if (revision == view.update) ++updated;
    }
  }
  std::string current_name = view.current;
  const int32_t wanted = view.set.spec().replicas();
  if (view.set.spec().update_strategy().type() == "RollingUpdate" && updated == wanted && ready == wanted &&
      replicas == wanted) {
    current = updated;
    current_name = view.update;
  }
  status.set_observed_generation(view.set.metadata().generation());
  const auto put = [&](int32_t value, auto set_field) {
    if (value != 0) (status.*set_field)(value);
  };
  using Status = appsv1::StatefulSetStatus;
  put(replicas, &Status::set_replicas);
  put(ready, &Status::set_ready_replicas);
  put(available, &Status::set_available_replicas);
  put(current, &Status::set_current_replicas);
  put(updated, &Status::set_updated_replicas);
  status.set_current_revision(current_name);
  status.set_update_revision(view.update);
  status.set_collision_count(view.set.status().collision_count());
  return status;
}

}  // namespace keelson::controllers
