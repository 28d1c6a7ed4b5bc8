#include "kubelet/pod/pod_syncer.h"

#include <sys/stat.h>

#include <algorithm>

#include "kubelet/container/container_config.h"
#include "kubelet/container/sandbox_config.h"
#include "kubelet/gc/containers.h"
#include "kubelet/pod/container_killer.h"
#include "kubelet/pod/container_metrics.h"
#include "kubelet/pod/pod_sync_task.h"
#include "kubelet/pod/termination_message.h"
#include "kubelet/status/readiness.h"
#include "lib/api/meta.h"
#include "lib/base/file.h"
#include "lib/base/log.h"
#include "lib/k8s/pods/pod_util.h"

namespace keelson::kubelet {

using std::chrono::seconds;

// A container that has run for so long before it crashed has recovered, whatever the longest wait is set to.
constexpr std::chrono::minutes kStableRun(10);

PodSyncer::PodSyncer(Dependencies dependencies, const Options& options, Clock& clock)
    : deps_(std::move(dependencies)),
      options_(options),
      clock_(clock),
      crash_backoff_(options.crash_backoff_first, options.crash_backoff_max, clock, kStableRun) {}

Result<SyncResult> PodSyncer::SyncPod(const PodPtr& pod, PodSyncState& state, std::stop_token stop) {
  if (!state.runtime_known) {
    const std::string& uid = pod->metadata().uid();
    PodRuntimeStatus seen;
    seen.uid = uid;
    if (state.started || !deps_.not_in_runtime(uid)) {
      KEELSON_ASSIGN_OR_RETURN(seen, InspectPod(deps_.runtime, uid, nullptr, stop));
    }
    state.runtime = std::make_shared<const PodRuntimeStatus>(std::move(seen));
    state.runtime_known = state.started = true;
  }
  if (auto failure = Admit(*pod, state)) {
    CountRejectedPod(failure->reason);
    deps_.event(*pod, "", "Warning", failure->reason, failure->message);
    deps_.statuses.Set(pod, RejectedStatus(*pod, failure->reason, failure->message, clock_.Now()));
    state.rejected = true;
    SyncResult result;
    result.terminal = true;
    return result;
  }
  const PodPtr granted = Granted(pod, state);
  auto result = PodSyncTask(deps_, options_, clock_, crash_backoff_, granted, state, stop).Run();
  // What was done before the failure may not have been seen: no second sandbox is made.
  if (!result) state.runtime_known = false;
  return result;
}

std::optional<k8s::AdmitFailure> PodSyncer::Admit(const corev1::Pod& pod, PodSyncState& state) {
  if (state.admitted) return std::nullopt;
  // One pod at a time: each is judged by what those before it were given.
  MutexLock lock(admission_mutex_);
  // A pod that ran before a restart of the kubelet is not rejected.
  const bool ran = !state.runtime->containers.empty() || !state.runtime->sandboxes.empty();
  if (auto failure = ran ? std::nullopt : deps_.admit(pod)) return failure;
  state.admitted = true;
  CountAdmittedPod(pod.spec());
  return std::nullopt;
}

Result<> PodSyncer::SyncTerminatingPod(const PodPtr& pod, PodSyncState& state, seconds grace,
                                       std::stop_token stop) {
  const std::string& uid = pod->metadata().uid();
  deps_.probes.StopLiveness(uid);
  deps_.resizes.Leave(uid);
  PodSyncTask task(deps_, options_, clock_, crash_backoff_, pod, state, stop);
  std::shared_ptr<const PodRuntimeStatus> begin;
  {
    MutexLock lock(state.terminating_mutex);  // from here on UpdateTerminatingStatus reports
    KEELSON_RETURN_IF_ERROR(task.RefreshRuntimeStatus());
    begin = state.runtime;
    state.stopping_containers = begin->AnyRunning();
    if (state.termination_reason || state.stopping_containers) {
      task.ReportStatus(false);  // that it terminates
    }
  }
  ContainerKiller killer(deps_.runtime, deps_.handlers, deps_.executor, deps_.event, deps_.node().node_ips,
                         clock_);
  Result<> killed = killer.KillPod(pod.get(), *begin, grace, stop);
  {
    MutexLock lock(state.terminating_mutex);
    state.stopping_containers = false;
  }
  KEELSON_RETURN_IF_ERROR(killed);
  deps_.probes.Remove(*pod);
  KEELSON_RETURN_IF_ERROR(task.RefreshRuntimeStatus());
  if (state.runtime->AnyRunning()) return Error(Code::kUnavailable, "containers of the pod still run");
  // The status of a pod that was rejected, by this kubelet or an earlier one, is already final.
  const bool reported =
      state.rejected || (state.runtime->containers.empty() && state.runtime->sandboxes.empty() &&
                         !state.admitted && k8s::IsTerminal(*pod));
  if (!reported) task.ReportStatus(true);
  return {};
}

void PodSyncer::UpdateReadinessStatus(const PodPtr& pod, PodSyncState& state) {
  if (k8s::IsTerminal(*pod)) return;
  MutexLock lock(state.status_mutex);
  auto status = deps_.statuses.Get(pod->metadata().uid());
  if (!status) return;  // the first sync reports it
  if (UpdateReadiness(pod->spec(), deps_.probes, clock_.Now(), *status)) deps_.statuses.Set(pod, *status);
}

void PodSyncer::UpdateTerminatingStatus(const PodPtr& pod, PodSyncState& state, std::stop_token stop) {
  MutexLock lock(state.terminating_mutex);
  if (!state.stopping_containers) return;
  PodSyncTask task(deps_, options_, clock_, crash_backoff_, pod, state, std::move(stop));
  if (!task.RefreshRuntimeStatus()) return;  // the next call or the final status does it
  if (!state.runtime->AnyRunning()) return;  // the final status comes at once
  deps_.probes.Update(pod, *state.runtime, deps_.node().node_ips);
  task.ReportStatus(false);
}

Result<> PodSyncer::SyncTerminatedPod(const PodPtr& pod, PodSyncState&, std::stop_token stop) {
  const std::string& uid = pod->metadata().uid();
  KEELSON_RETURN_IF_ERROR(deps_.volumes.Unmount(deps_.node().paths, uid, stop));
  // Housekeeping goes on with what is left: a driver that cannot unstage its volume does not keep the pod from its end.
  if (auto removed = deps_.volumes.RemoveUnmounted(deps_.node().paths, uid, stop); !removed) {
    log::Warn("Cannot remove all that a pod had yet", {{"pod", api::KeyOf(*pod)}, {"err", removed.error()}});
  }
  deps_.user_namespaces.Forget(uid);
  KEELSON_RETURN_IF_ERROR(deps_.cgroups.Remove(uid));
  if (deps_.release_resources) deps_.release_resources(uid);
  deps_.images.ForgetPod(uid);
  deps_.allocations.Forget(uid);
  crash_backoff_.ForgetPrefix(uid + "/");
  return {};
}

Result<> PodSyncer::RemoveFromRuntime(const std::string& uid, std::stop_token stop) {
  KEELSON_ASSIGN_OR_RETURN(PodRuntimeStatus status, InspectPod(deps_.runtime, uid, nullptr, stop));
  for (const ContainerRecord& record : status.containers) {
    KEELSON_RETURN_IF_ERROR(deps_.runtime.RemoveContainer(record.id, stop));
  }
  // Before the sandboxes: they are what a kubelet that comes after this one knows the pod by.
  if (!status.name.empty()) {
    KEELSON_RETURN_IF_ERROR(RemoveTree(deps_.node().paths.PodLogs(status.ns, status.name, uid)));
  }
  for (const auto& sandbox : status.sandboxes) {
    KEELSON_RETURN_IF_ERROR(deps_.runtime.StopPodSandbox(sandbox.id, stop));
    KEELSON_RETURN_IF_ERROR(deps_.runtime.RemovePodSandbox(sandbox.id, stop));
  }
  return {};
}

void PodSyncer::CollectDeadContainers(const PodPtr&, PodSyncState& state, std::stop_token stop) {
  std::map<std::string, int> runs;
  for (const ContainerRecord& record : state.runtime->containers) {
    if (++runs[record.name] <= options_.kept_runs || record.state != cri::ContainerState::kExited) continue;
    (void)RemoveRun(deps_.runtime, deps_.node().paths, record, stop);
  }
  for (size_t i = 1; i < state.runtime->sandboxes.size(); ++i) {
    const auto& sandbox = state.runtime->sandboxes[i];
    bool used = std::any_of(state.runtime->containers.begin(), state.runtime->containers.end(),
                            [&](const auto& record) { return record.sandbox_id == sandbox.id; });
    if (!used && sandbox.state == cri::SandboxState::kNotReady) {
      (void)deps_.runtime.RemovePodSandbox(sandbox.id, stop);
    }
  }
}

}  // namespace keelson::kubelet
