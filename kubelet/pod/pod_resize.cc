// In-place resize of a running pod.
#include <algorithm>
#include <utility>

#include "kubelet/metrics/stopwatch.h"
#include "kubelet/pod/pod_sync_task.h"
#include "kubelet/resize/resize_metrics.h"
#include "lib/api/meta.h"

namespace keelson::kubelet {

namespace {

constexpr std::chrono::seconds kRetry(10);

}  // namespace

PodSyncer::PodPtr PodSyncer::Granted(const PodPtr& pod, PodSyncState& state) {
  const std::string& uid = pod->metadata().uid();
  if (!state.allocation_restored) deps_.allocations.Restore(*pod, *state.runtime);
  state.allocation_restored = true;
  PodPtr granted = deps_.allocations.Granted(pod);
  ResizeState resize = deps_.allocations.State(uid);
  const bool waited = resize.pending == "Deferred";
  resize.pending.clear();
  resize.message.clear();
  if (granted != pod) {
    const int64_t wish = pod->metadata().generation();
    const bool fresh = std::exchange(state.counted_resize_generation, wish) != wish;
    if (fresh) CountRequestedResize(*pod, *granted);
    if (const auto refusal = deps_.resizes.Ask(pod)) {
      resize.pending = refusal->reason;
      resize.message = refusal->message;
      if (fresh && refusal->reason == "Infeasible") CountInfeasibleResize(refusal->detail);
    } else {
      if (waited) CountDeferredResizeAccepted(fresh ? "pod_updated" : "periodic_retry");
      granted = pod;
    }
    state.resync_only = false;  // a pod that waits for a resize gets a full pass
  } else {
    deps_.resizes.Leave(uid);
  }
  deps_.allocations.SetState(uid, resize);
  return granted;
}

void PodSyncTask::PlanResize(PodActions& actions) {
  if (actions.kill_pod || actions.create_sandbox) return;
  const std::string& uid = pod_->metadata().uid();
  resize_ = kubelet::PlanResize(
      *pod_, *state_.runtime,
      [&](const ContainerRecord& record) { return deps_.allocations.Actual(uid, record); },
      {deps_.allocations.ActualOfPod(uid, *state_.runtime),
       [&](const ContainerRecord& record) { return deps_.allocations.ActualOfPod(uid, record); }});
  auto dies = [&](const std::string& id) {
    return std::any_of(actions.containers_to_kill.begin(), actions.containers_to_kill.end(),
                       [&](const KillAction& kill) { return kill.id == id; });
  };
  for (const std::string& name : resize_.restart) {
    const ContainerRecord* record = state_.runtime->Latest(name);
    if (!record || dies(record->id)) continue;
    actions.containers_to_kill.push_back(
        {record->id, name, "Container " + name + " resize requires restart", KillReason::kChanged});
    actions.containers_to_start.push_back(name);
  }
}

void PodSyncTask::Resize() {
  const std::string& uid = pod_->metadata().uid();
  ResizeState state = deps_.allocations.State(uid);
  if (resize_.empty() && !state.in_progress) return;
  state.in_progress = false;
  state.error.clear();
  if (!resize_.empty()) {
    Resizer resizer(deps_.runtime, deps_.cgroups, deps_.allocations);
    Stopwatch watch;
    auto applied = resizer.Apply(*pod_, resize_.update, node_, stop_);
    CountResizeDuration(applied.has_value(), watch.Seconds());
    state.in_progress = !applied;
    if (applied) {
      Event("", "Normal", "ResizeCompleted", "Pod resize completed");
    } else {
      state.error = applied.error().message();
      Event("", "Warning", "ResizeError", "Pod resize error: " + state.error);
      RequeueAfter(kRetry);
    }
  }
  deps_.allocations.SetState(uid, state);
}

void PodSyncTask::ReportResize(const corev1::Pod& base, corev1::PodStatus& status) {
  const std::string& uid = pod_->metadata().uid();
  const ResizeState state = deps_.allocations.State(uid);
  SetResizeConditions(base, state, api::ToTime(clock_.Now()), status);
  k8s::FromResourceList(k8s::PodRequests(*pod_, {.exclude_overhead = true}),
                        *status.mutable_allocated_resources());
  status.clear_resources();
  if (pod_->spec().has_resources()) {
    *status.mutable_resources() = pod_->spec().resources();
    if (auto actual = deps_.allocations.ActualOfPod(uid, *state_.runtime)) {
      SetResizable(*actual, *status.mutable_resources());
    }
  }
  if (!state.in_progress) return;
  // Until then containers do not have what they were granted.
  for (auto* statuses : {status.mutable_init_container_statuses(), status.mutable_container_statuses()}) {
    for (auto& container : *statuses) {
      if (const ContainerRecord* record = state_.runtime->Latest(container.name())) {
        if (auto actual = deps_.allocations.Actual(uid, *record)) *container.mutable_resources() = *actual;
      }
    }
  }
}

}  // namespace keelson::kubelet
