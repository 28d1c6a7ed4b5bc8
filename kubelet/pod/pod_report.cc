// What PodSyncTask tells of the pod.
#include <algorithm>

#include "kubelet/pod/pod_sync_task.h"
#include "kubelet/pod/termination_message.h"
#include "kubelet/status/own_conditions.h"
#include "lib/k8s/pods/pod_util.h"

namespace keelson::kubelet {

corev1::PodStatus PodSyncTask::ReportStatus(bool terminal) {
  return Report(terminal, false, StatusManager::When::kNow);
}

void PodSyncTask::ReportBefore(const PodActions& actions) {
  if (!resize_.empty()) return;  // what containers are granted is not what they have, and is just being given
  Report(false, !actions.PodIsOver(), StatusManager::When::kSoon);
}

corev1::PodStatus PodSyncTask::Report(bool terminal, bool more_to_do, StatusManager::When when) {
  MutexLock lock(memory_.reporting);
  // On top of what was said last: the API may not have shown it to us yet. What others say is as the API has
  // it.
  corev1::Pod base = *pod_;
  if (auto last = deps_.statuses.Get(pod_->metadata().uid())) {
    corev1::PodStatus& status = *base.mutable_status();
    status = std::move(*last);
    auto& conditions = *status.mutable_conditions();
    const auto others = [this](const corev1::PodCondition& condition) {
      return !IsKubeletsCondition(condition.type()) &&
             !(memory_.ending && condition.type() == k8s::kDisruptionTarget);
    };
    conditions.erase(std::remove_if(conditions.begin(), conditions.end(), others), conditions.end());
    for (const auto& condition : pod_->status().conditions())
      if (!k8s::FindCondition(status, condition.type())) *conditions.Add() = condition;
  }
  if (k8s::IsTerminal(*pod_)) base.mutable_status()->set_phase(pod_->status().phase());  // others' word
  // A pod that the node ends has what it was given until nothing of it runs, and has not failed before.
  const bool ended = memory_.ending && !memory_.runtime->AnyRunning();
  if (ended) base.mutable_status()->set_phase("Failed");  // conditions follow the phase
  StatusInput input{base,
                    *memory_.runtime,
                    deps_.probes,
                    memory_.waiting,
                    IsInitialized(*pod_, *memory_.runtime, deps_.probes),
                    terminal,
                    node_.node_ips,
                    options_.runtime_name,
                    TerminationMessage,
                    clock_.Now()};
  input.recursive_read_only = node_.RecursiveReadOnly(memory_.handler);
  input.restarting_all =
      memory_.restarting_all || (!terminal && ShouldRestartAll(pod_->spec(), *memory_.runtime));
  input.more_to_do = more_to_do;
  input.stop_signals = node_.stop_signals;
  input.image_volumes = &memory_.image_volumes;
  input.lacks_volumes = !memory_.mount_error.empty() && memory_.runtime->containers.empty();
  corev1::PodStatus status = GenerateStatus(input);
  if (deps_.complete_status) deps_.complete_status(pod_->metadata().uid(), status);
  if (ended) ApplyEnding(*memory_.ending, clock_.Now(), status);
  ReportResize(base, status);
  deps_.statuses.Set(pod_, status, when);
  return status;
}

}  // namespace keelson::kubelet
