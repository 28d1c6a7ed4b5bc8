#include "kubelet/pod/pod_sync_task.h"

#include <algorithm>

#include "kubelet/container/container_config.h"
#include "kubelet/container/container_hash.h"
#include "kubelet/pod/container_killer.h"
#include "kubelet/pod/container_metrics.h"
#include "lib/api/meta.h"
#include "lib/base/wall_time.h"
#include "lib/k8s/pods/pod_util.h"

namespace keelson::kubelet {

using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

constexpr int kQuickResyncs = 5;
constexpr milliseconds kFirstQuickResync(30);

}  // namespace

seconds GraceOf(const corev1::PodSpec& spec) {
  return Span(spec.has_termination_grace_period_seconds() ? spec.termination_grace_period_seconds() : 30);
}

PodSyncTask::PodSyncTask(PodSyncer::Dependencies& deps, const PodSyncer::Options& options, Clock& clock,
                         Backoff& backoff, const PodSyncer::PodPtr& pod, PodSyncState& state,
                         std::stop_token stop)
    : deps_(deps),
      options_(options),
      clock_(clock),
      backoff_(backoff),
      pod_(pod),
      state_(state),
      stop_(std::move(stop)),
      node_(deps.node()),
      volumes_(VolumePaths()) {}

void PodSyncTask::Event(const std::string& container, const char* type, const char* reason,
                        const std::string& message) {
  deps_.event(*pod_, container, type, reason, message);
}

Result<> PodSyncTask::RefreshRuntimeStatus() {
  return SetRuntimeStatus(InspectPod(deps_.runtime, pod_->metadata().uid(),
                                     state_.runtime_known ? state_.runtime.get() : nullptr, stop_));
}

Result<> PodSyncTask::SetRuntimeStatus(Result<PodRuntimeStatus> answer) {
  KEELSON_ASSIGN_OR_RETURN(PodRuntimeStatus seen, std::move(answer));
  if (state_.runtime_known) CountContainerEnds(pod_->spec(), *state_.runtime, seen);
  state_.runtime = std::make_shared<const PodRuntimeStatus>(std::move(seen));
  state_.runtime_known = true;
  deps_.set_runtime_status(pod_->metadata().uid(), state_.runtime);
  return {};
}

void PodSyncTask::RequeueAfter(milliseconds after) {
  if (!result_.requeue_after || after < *result_.requeue_after) {
    result_.requeue_after = std::max(after, milliseconds(1));
  }
}

void PodSyncTask::SetWaiting(const std::string& container, const std::string& reason,
                             const std::string& message) {
  state_.waiting[container] = {reason, message};
}

Result<SyncResult> PodSyncTask::Run() {
  bool known = !state_.runtime->sandboxes.empty() || !state_.runtime->containers.empty();
  const bool unchanged =
      state_.resync_only && deps_.runtime_unchanged(pod_->metadata().uid(), *state_.runtime);
  if (known && !unchanged) KEELSON_RETURN_IF_ERROR(RefreshRuntimeStatus());
  if (auto handler = deps_.runtime_handler(pod_->spec().runtime_class_name())) {
    state_.runtime_handler = std::move(*handler);
  }
  if (PastDeadline()) {
    ReportStatus(false);
    result_.terminal = true;
    return result_;
  }
  if (known && unchanged) {  // all is as the last pass left it, and has been reported
    RefreshVolumes();
    return result_;
  }
  deps_.probes.Update(pod_, *state_.runtime, node_.node_ips);
  PodActions actions = ComputePodActions(*pod_, *state_.runtime, deps_.probes);
  PlanResize(actions);
  if (actions.restart_all_containers && RestartAllInBackOff()) actions.restart_all_containers = false;
  bool acts = actions.kill_pod || actions.restart_all_containers || actions.create_sandbox ||
              !actions.containers_to_kill.empty() || !actions.containers_to_start.empty() ||
              !actions.ephemeral_containers_to_start.empty();
  if (acts) ReportStatusBefore(actions);
  if (actions.PodIsOver()) {  // SyncTerminatingPod reports how far its end has come
    result_.terminal = true;
    return result_;
  }
  if (acts) KEELSON_RETURN_IF_ERROR(KillContainers(actions));
  Resize();
  std::string sandbox_id = actions.sandbox_id;
  bool starts = !actions.containers_to_start.empty() || !actions.ephemeral_containers_to_start.empty();
  if (actions.create_sandbox || starts) {
    KEELSON_RETURN_IF_ERROR(EnsureSandboxAndVolumes(actions, sandbox_id));
    if (volumes_ && !sandbox_id.empty()) {
      ResetBackOffs();
      for (const auto* names : {&actions.ephemeral_containers_to_start, &actions.containers_to_start}) {
        for (const std::string& name : *names) {
          corev1::Container storage;
          if (const corev1::Container* container = FindContainer(name, storage);
              container && !stop_.stop_requested()) {
            StartContainer(*container, sandbox_id);
          }
        }
      }
    }
  } else {
    RefreshVolumes();
  }
  if (stop_.stop_requested()) return Error(Code::kCancelled, "pod sync was cut short");
  const bool only_starts =
      !actions.kill_pod && !actions.restart_all_containers && actions.containers_to_kill.empty() && !removed_;
  if (acts) {
    KEELSON_RETURN_IF_ERROR(only_starts ? SetRuntimeStatus(WithContainers(deps_.runtime, *state_.runtime,
                                                                          sandbox_id, made_, stop_))
                                        : RefreshRuntimeStatus());
  }
  for (auto it = state_.waiting.begin(); it != state_.waiting.end();) {
    const ContainerRecord* record = state_.runtime->Latest(it->first);
    bool runs = record && record->state == cri::ContainerState::kRunning;
    it = runs ? state_.waiting.erase(it) : std::next(it);
  }
  deps_.probes.Update(pod_, *state_.runtime, node_.node_ips);
  corev1::PodStatus status = ReportStatus(false);
  result_.terminal = status.phase() == "Succeeded" || status.phase() == "Failed";
  PlanQuickResync(actions);
  return result_;
}

// A container whose spec has changed does not wait for failures of the old one.
void PodSyncTask::ResetBackOffs() {
  k8s::ForEachContainer(pod_->spec(), [this](const corev1::Container& container) {
    const ContainerRecord* last = state_.runtime->Latest(container.name());
    if (last && last->state == cri::ContainerState::kExited && !last->hash.empty() &&
        !IsMadeFrom(container, last->hash)) {
      backoff_.Forget(pod_->metadata().uid() + "/" + container.name());
    }
  });
}

// spec.activeDeadlineSeconds counts from the time when a kubelet first saw the pod.
bool PodSyncTask::PastDeadline() {
  if (state_.termination_reason) return true;
  if (!pod_->spec().has_active_deadline_seconds()) return false;
  auto last = deps_.statuses.Get(pod_->metadata().uid());
  const corev1::PodStatus& status = last ? *last : pod_->status();
  WallTime begin = status.has_start_time() ? api::FromTime(status.start_time()) : clock_.Now();
  auto left = begin + seconds(pod_->spec().active_deadline_seconds()) - clock_.Now();
  if (left.count() > 0) {
    RequeueAfter(std::chrono::duration_cast<milliseconds>(left) + milliseconds(1));
    return false;
  }
  state_.termination_reason = TerminationReason{
      "DeadlineExceeded", "Pod was active on the node longer than the specified deadline", ""};
  Event("", "Normal", "DeadlineExceeded", state_.termination_reason->message);
  return true;
}

// The PLEG may see an exit only at its next relist. Containers that are meant to end are looked at sooner, so that
// a short init container does not cost a second.
void PodSyncTask::PlanQuickResync(const PodActions& actions) {
  bool ends =
      pod_->spec().restart_policy() != "Always" ||
      (!actions.containers_to_start.empty() &&
       std::any_of(pod_->spec().init_containers().begin(), pod_->spec().init_containers().end(),
                   [&](const auto& item) { return item.name() == actions.containers_to_start.back(); }));
  if (!made_.empty()) state_.quick_resyncs = ends ? kQuickResyncs : 0;
  // More may be due at once: the next init container, or the first app container after the last of them.
  PodActions next = ComputePodActions(*pod_, *state_.runtime, deps_.probes);
  bool more = next.PodIsOver();
  for (const std::string& name : next.containers_to_start) more = more || !state_.waiting.count(name);
  if (more && !result_.requeue_after) {
    RequeueAfter(actions.containers_to_start.empty() ? kFirstQuickResync : milliseconds(1));
  }
  if (state_.quick_resyncs > 0) {
    RequeueAfter(kFirstQuickResync * (1 << (kQuickResyncs - state_.quick_resyncs--)));
  }
}

Result<> PodSyncTask::KillContainers(const PodActions& actions) {
  ContainerKiller killer(deps_.runtime, deps_.handlers, deps_.executor, deps_.event, node_.node_ips, clock_);
  seconds grace = GraceOf(pod_->spec());
  if (actions.kill_pod) {
    if (!state_.runtime->sandboxes.empty()) {
      Event("", "Normal", "SandboxChanged", "Pod sandbox changed, it will be killed and re-created.");
    }
    return killer.KillPod(pod_.get(), *state_.runtime, grace, stop_);
  }
  if (actions.restart_all_containers) return RestartAllContainers(killer, grace);
  for (const KillAction& kill : actions.containers_to_kill) {
    KillRequest request{pod_.get(), kill.id, kill.name, HookAddress(), kill.message, grace};
    const corev1::Container* container = k8s::FindContainer(pod_->spec(), kill.name);
    if (container && kill.reason == KillReason::kLivenessProbe &&
        container->liveness_probe().has_termination_grace_period_seconds()) {
      request.grace = Span(container->liveness_probe().termination_grace_period_seconds());
    }
    if (container && kill.reason == KillReason::kStartupProbe &&
        container->startup_probe().has_termination_grace_period_seconds()) {
      request.grace = Span(container->startup_probe().termination_grace_period_seconds());
    }
    KEELSON_RETURN_IF_ERROR(killer.Kill(request, stop_));
  }
  if (!actions.containers_to_kill.empty()) return RefreshRuntimeStatus();
  return {};
}

// An exit that restarts all containers is subject to back-off like any other.
bool PodSyncTask::RestartAllInBackOff() {
  PodRuntimeStatus one = *state_.runtime;
  bool held = false;
  k8s::ForEachContainer(pod_->spec(), [&](const corev1::Container& container) {
    const ContainerRecord* record = state_.runtime->Latest(container.name());
    if (!record) return;
    one.containers = {*record};
    if (ShouldRestartAll(pod_->spec(), one)) held = DoBackOff(container, record) || held;
  });
  return held;
}

// A kubelet that crashed halfway is no obstacle: the record of the exit that asks for the restart goes last.
Result<> PodSyncTask::RestartAllContainers(ContainerKiller& killer, seconds grace) {
  state_.restarting_all = true;
  KEELSON_RETURN_IF_ERROR(killer.KillContainers(pod_.get(), *state_.runtime, grace, false, stop_));
  KEELSON_RETURN_IF_ERROR(RefreshRuntimeStatus());
  ReportStatus(false);  // the API server has the restart counts from now on
  PodRuntimeStatus asks = *state_.runtime;
  for (bool causes : {false, true}) {
    for (const ContainerRecord& record : state_.runtime->containers) {
      asks.containers = {record};
      if (ShouldRestartAll(pod_->spec(), asks) == causes) {
        KEELSON_RETURN_IF_ERROR(deps_.runtime.RemoveContainer(record.id, stop_));
      }
    }
  }
  state_.restarting_all = false;
  state_.waiting.clear();
  RequeueAfter(milliseconds(1));
  return {};
}

const corev1::Container* PodSyncTask::FindContainer(const std::string& name,
                                                    corev1::Container& storage) const {
  if (const corev1::Container* container = k8s::FindContainer(pod_->spec(), name)) return container;
  for (const auto& ephemeral : pod_->spec().ephemeral_containers()) {
    if (ephemeral.ephemeral_container_common().name() != name) continue;
    storage = FromEphemeral(ephemeral);
    return &storage;
  }
  return nullptr;
}

}  // namespace keelson::kubelet
