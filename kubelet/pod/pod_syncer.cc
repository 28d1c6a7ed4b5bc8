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
#include "lib/base/file.h"
#include "lib/k8s/pods/pod_util.h"

namespace keelson::kubelet {

using std::chrono::milliseconds;
using std::chrono::seconds;

// A container that has run for so long before it crashed has recovered, whatever the longest wait is set to.
constexpr std::chrono::minutes kStableRun(10);

PodSyncer::PodSyncer(Dependencies dependencies, const Options& options, Clock& clock)
    : deps_(std::move(dependencies)),
      options_(options),
      clock_(clock),
      crash_backoff_(options.crash_backoff_first, options.crash_backoff_max, clock, kStableRun) {}

Result<SyncResult> PodSyncer::Sync(const PodPtr& pod, PodMemory& memory, std::stop_token stop) {
  if (!memory.inspected) {
    const std::string& uid = pod->metadata().uid();
    PodRuntimeStatus seen;
    seen.uid = uid;
    if (memory.begun || !deps_.unknown(uid)) {
      ASSIGN_OR_RETURN(seen, InspectPod(deps_.runtime, uid, nullptr, stop));
    }
    memory.runtime = std::make_shared<const PodRuntimeStatus>(std::move(seen));
    memory.inspected = memory.begun = true;
  }
  if (auto failure = Admit(*pod, memory)) {
    CountRejectedPod(failure->reason);
    deps_.event(*pod, "", "Warning", failure->reason, failure->message);
    deps_.statuses.Set(pod, RejectedStatus(*pod, failure->reason, failure->message, clock_.Now()));
    memory.rejected = true;
    SyncResult result;
    result.ended = true;
    return result;
  }
  const PodPtr granted = Granted(pod, memory);
  auto result = PodSyncTask(deps_, options_, clock_, crash_backoff_, granted, memory, stop).Run();
  // What was done before it failed may not have been seen: a sandbox is not made twice.
  if (!result) memory.inspected = false;
  return result;
}

std::optional<k8s::AdmitFailure> PodSyncer::Admit(const corev1::Pod& pod, PodMemory& memory) {
  if (memory.admitted) return std::nullopt;
  // One pod at a time: each is judged by what those before it have got.
  MutexLock lock(admission_);
  // A pod that ran before is not sent away by a restart of the kubelet.
  const bool ran = !memory.runtime->containers.empty() || !memory.runtime->sandboxes.empty();
  if (auto failure = ran ? std::nullopt : deps_.admit(pod)) return failure;
  memory.admitted = true;
  CountAdmittedPod(pod.spec());
  return std::nullopt;
}

Result<> PodSyncer::Terminate(const PodPtr& pod, PodMemory& memory, seconds grace, std::stop_token stop) {
  const std::string& uid = pod->metadata().uid();
  deps_.probes.StopLiveness(uid);
  deps_.resizes.Leave(uid);
  PodSyncTask task(deps_, options_, clock_, crash_backoff_, pod, memory, stop);
  std::shared_ptr<const PodRuntimeStatus> begin;
  {
    MutexLock lock(memory.telling);  // what happens from here on is told by TellOfEnding
    RETURN_IF_ERROR(task.Inspect());
    begin = memory.runtime;
    memory.stopping = begin->AnyRunning();
    if (memory.ending || memory.stopping) task.ReportStatus(false);  // that it ends, before it has
  }
  ContainerKiller killer(deps_.runtime, deps_.handlers, deps_.executor, deps_.event, deps_.node().node_ips,
                         clock_);
  Result<> killed = killer.KillPod(pod.get(), *begin, grace, stop);
  {
    MutexLock lock(memory.telling);
    memory.stopping = false;
  }
  RETURN_IF_ERROR(killed);
  deps_.probes.Remove(*pod);
  RETURN_IF_ERROR(task.Inspect());
  if (memory.runtime->AnyRunning()) return Error(Code::kUnavailable, "containers of the pod still run");
  // A pod that the node did not take, now or before this kubelet began, has no more to tell.
  const bool told =
      memory.rejected || (memory.runtime->containers.empty() && memory.runtime->sandboxes.empty() &&
                          !memory.admitted && k8s::IsTerminal(*pod));
  if (!told) task.ReportStatus(true);
  return {};
}

void PodSyncer::TellReadiness(const PodPtr& pod, PodMemory& memory) {
  if (k8s::IsTerminal(*pod)) return;
  MutexLock lock(memory.reporting);
  auto status = deps_.statuses.Get(pod->metadata().uid());
  if (!status) return;  // the first sync will tell
  if (UpdateReadiness(pod->spec(), deps_.probes, clock_.Now(), *status)) deps_.statuses.Set(pod, *status);
}

void PodSyncer::TellOfEnding(const PodPtr& pod, PodMemory& memory, std::stop_token stop) {
  MutexLock lock(memory.telling);
  if (!memory.stopping) return;
  PodSyncTask task(deps_, options_, clock_, crash_backoff_, pod, memory, std::move(stop));
  if (!task.Inspect()) return;                // the next look is better, or the end is told
  if (!memory.runtime->AnyRunning()) return;  // the end is told at once
  deps_.probes.Update(pod, *memory.runtime, deps_.node().node_ips);
  task.ReportStatus(false);
}

Result<> PodSyncer::CleanUp(const PodPtr& pod, PodMemory&, std::stop_token stop) {
  const std::string& uid = pod->metadata().uid();
  RETURN_IF_ERROR(deps_.volumes.Remove(deps_.node().paths, uid, stop));
  deps_.user_namespaces.Forget(uid);
  RETURN_IF_ERROR(deps_.cgroups.Remove(uid));
  if (deps_.release) deps_.release(uid);
  deps_.images.ForgetPod(uid);
  deps_.allocations.Forget(uid);
  crash_backoff_.ForgetPrefix(uid + "/");
  return {};
}

Result<> PodSyncer::RemoveFromRuntime(const std::string& uid, std::stop_token stop) {
  ASSIGN_OR_RETURN(PodRuntimeStatus status, InspectPod(deps_.runtime, uid, nullptr, stop));
  for (const ContainerRecord& record : status.containers)
    RETURN_IF_ERROR(deps_.runtime.RemoveContainer(record.id, stop));
  // Before the sandboxes: they are what a kubelet that comes after this one knows the pod by.
  if (!status.name.empty())
    RETURN_IF_ERROR(RemoveTree(deps_.node().paths.PodLogs(status.ns, status.name, uid)));
  for (const auto& sandbox : status.sandboxes) {
    RETURN_IF_ERROR(deps_.runtime.StopPodSandbox(sandbox.id, stop));
    RETURN_IF_ERROR(deps_.runtime.RemovePodSandbox(sandbox.id, stop));
  }
  return {};
}

void PodSyncer::CollectGarbage(const PodPtr&, PodMemory& memory, std::stop_token stop) {
  std::map<std::string, int> runs;
  for (const ContainerRecord& record : memory.runtime->containers) {
    if (++runs[record.name] <= options_.kept_runs || record.state != cri::ContainerState::kExited) continue;
    (void)RemoveRun(deps_.runtime, deps_.node().paths, record, stop);
  }
  for (size_t i = 1; i < memory.runtime->sandboxes.size(); ++i) {
    const auto& sandbox = memory.runtime->sandboxes[i];
    bool used = std::any_of(memory.runtime->containers.begin(), memory.runtime->containers.end(),
                            [&](const auto& record) { return record.sandbox_id == sandbox.id; });
    if (!used && sandbox.state == cri::SandboxState::kNotReady)
      (void)deps_.runtime.RemovePodSandbox(sandbox.id, stop);
  }
}

}  // namespace keelson::kubelet
