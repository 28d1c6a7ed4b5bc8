// What has to be done so that a pod is as its spec says. Pure: the plan, apart from its execution.
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
  bool kill_pod = false;  // all containers and the sandbox go; what follows is done after that
  // All containers go, without hooks, and with them what is remembered of their runs: the pod begins anew in
  // the sandbox that it has.
  bool restart_all = false;
  bool create_sandbox = false;
  std::string sandbox_id;  // of the sandbox that stays
  uint32_t attempt = 0;    // of the sandbox to create
  std::vector<KillAction> kill;
  std::vector<std::string> start;  // names, in order: init containers and sidecars first
  std::vector<std::string> start_ephemeral;

  bool PodIsOver() const { return kill_pod && !create_sandbox; }  // no container of it will run again
};

// Whether `container` may run once more after `record`, its latest run (null: it never ran): by the first of
// its restart rules that knows the exit code, its own restart policy, the pod's.
bool ShouldRestart(const corev1::PodSpec& spec, const corev1::Container& container,
                   const ContainerRecord* record);

// Whether an exit of a container asks for all containers of the pod to begin anew.
bool ShouldRestartAll(const corev1::PodSpec& spec, const PodRuntimeStatus& status);

// All init containers have done their work (sidecars: have started).
bool IsInitialized(const corev1::Pod& pod, const PodRuntimeStatus& status, const ProbeResults& probes);

// `pod` is not terminating. Init containers run one after another, sidecars from their turn on; a lost
// sandbox takes all containers with it. Back-off is the business of who starts.
PodActions ComputePodActions(const corev1::Pod& pod, const PodRuntimeStatus& status,
                             const ProbeResults& probes);

}  // namespace keelson::kubelet
