// How PodSyncTask reports the pod's status.
#include <algorithm>

#include "kubelet/pod/pod_sync_task.h"
#include "kubelet/pod/termination_message.h"
#include "kubelet/status/own_conditions.h"
#include "lib/k8s/pods/pod_util.h"

namespace keelson::kubelet {

corev1::PodStatus PodSyncTask::ReportStatus(bool terminal) {
  return Report(terminal, false, StatusManager::When::kNow);
}

void PodSyncTask::ReportStatusBefore(const PodActions& actions) {
  if (!resize_.empty()) return;  // containers do not yet have what they were granted
  Report(false, !actions.PodIsOver(), StatusManager::When::kSoon);
}

corev1::PodStatus PodSyncTask::Report(bool terminal, bool more_to_do, StatusManager::When when) {
  MutexLock lock(state_.status_mutex);
  // Based on the last reported status: the informer may not have seen it yet. Others' conditions come from the
  // informer.
  corev1::Pod base = *pod_;
  if (auto last = deps_.statuses.Get(pod_->metadata().uid())) {
    corev1::PodStatus& status = *base.mutable_status();
    status = std::move(*last);
    auto& conditions = *status.mutable_conditions();
    const auto others = [this](const corev1::PodCondition& condition) {
      return !IsKubeletsCondition(condition.type()) &&
             !(state_.termination_reason && condition.type() == k8s::kDisruptionTarget);
    };
    conditions.erase(std::remove_if(conditions.begin(), conditions.end(), others), conditions.end());
    for (const auto& condition : pod_->status().conditions()) {
      if (!k8s::FindCondition(status, condition.type())) *conditions.Add() = condition;
    }
  }
  if (k8s::IsTerminal(*pod_)) {
    base.mutable_status()->set_phase(pod_->status().phase());  // set by another client
  }
  // A pod that the node terminates becomes Failed only when nothing of it runs.
  const bool ended = state_.termination_reason && !state_.runtime->AnyRunning();
  if (ended) base.mutable_status()->set_phase("Failed");  // conditions follow the phase
  StatusInput input{base,
                    *state_.runtime,
                    deps_.probes,
                    state_.waiting,
                    IsInitialized(*pod_, *state_.runtime, deps_.probes),
                    terminal,
                    node_.node_ips,
                    options_.runtime_name,
                    TerminationMessage,
                    clock_.Now()};
  input.recursive_read_only = node_.RecursiveReadOnly(state_.runtime_handler);
  input.restarting_all =
      state_.restarting_all || (!terminal && ShouldRestartAll(pod_->spec(), *state_.runtime));
  input.more_to_do = more_to_do;
  input.stop_signals = node_.stop_signals;
  input.image_volumes = &state_.image_volumes;
  input.lacks_volumes = !state_.reported_mount_error.empty() && state_.runtime->containers.empty();
  corev1::PodStatus status = GenerateStatus(input);
  if (deps_.update_resource_status) deps_.update_resource_status(pod_->metadata().uid(), status);
  if (ended) ApplyTerminationReason(*state_.termination_reason, clock_.Now(), status);
  ReportResize(base, status);
  deps_.statuses.Set(pod_, status, when);
  return status;
}

}  // namespace keelson::kubelet
