// Compares a pod with what runs of it, and plans what has to be done. Pure: PodSyncTask executes the plan.
#pragma once

#include <string>
#include <vector>

#include "kubelet/container/runtime_status.h"
#include "kubelet/probe/results.h"
#include "lib/api/types.h"

namespace keelson::kubelet {

enum class KillReason { kNone, kLivenessProbe, kStartupProbe, kChanged, kUnknownState, kPodDone };

struct KillAction {
  std::string id, name, message;
  KillReason reason = KillReason::kNone;
};

struct PodActions {
  bool kill_pod = false;  // all containers and the sandbox, before anything else below
  // All containers are killed without hooks and removed, then the pod starts again in its sandbox (restart
  // rules: RestartAllContainers).
  bool restart_all_containers = false;
  bool create_sandbox = false;
  std::string sandbox_id;        // of the sandbox that stays
  uint32_t sandbox_attempt = 0;  // of the sandbox to create
  std::vector<KillAction> containers_to_kill;
  std::vector<std::string> containers_to_start;  // names, in order: init containers and sidecars first
  std::vector<std::string> ephemeral_containers_to_start;

  // No container of the pod will run again.
  bool PodIsOver() const { return kill_pod && !create_sandbox; }
};

// Whether `container` may run once more after `record`, its latest run (null: it never ran): by the first of
// its restart rules that knows the exit code, its own restart policy, the pod's.
bool ShouldRestart(const corev1::PodSpec& spec, const corev1::Container& container,
                   const ContainerRecord* record);

// Whether a restart rule of a container that has exited restarts all containers of the pod.
bool ShouldRestartAll(const corev1::PodSpec& spec, const PodRuntimeStatus& status);

// Whether all init containers have succeeded, and all sidecars have started.
bool IsInitialized(const corev1::Pod& pod, const PodRuntimeStatus& status, const ProbeResults& probes);

// The plan for a pod that does not terminate. Init containers run one after another, sidecars from their turn
// on; a lost sandbox takes all containers with it. The plan knows nothing of back-off: PodSyncTask applies it.
PodActions ComputePodActions(const corev1::Pod& pod, const PodRuntimeStatus& status,
                             const ProbeResults& probes);

}  // namespace keelson::kubelet
