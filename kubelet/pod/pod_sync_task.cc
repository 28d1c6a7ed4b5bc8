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

constexpr int kQuickLooks = 5;
constexpr milliseconds kFirstQuickLook(30);

}  // namespace

seconds GraceOf(const corev1::PodSpec& spec) {
  return Span(spec.has_termination_grace_period_seconds() ? spec.termination_grace_period_seconds() : 30);
}

PodSyncTask::PodSyncTask(PodSyncer::Dependencies& deps, const PodSyncer::Options& options, Clock& clock,
                         Backoff& backoff, const PodSyncer::PodPtr& pod, PodMemory& memory,
                         std::stop_token stop)
    : deps_(deps),
      options_(options),
      clock_(clock),
      backoff_(backoff),
      pod_(pod),
      memory_(memory),
      stop_(std::move(stop)),
      node_(deps.node()),
      volumes_(VolumePaths()) {}

void PodSyncTask::Event(const std::string& container, const char* type, const char* reason,
                        const std::string& message) {
  deps_.event(*pod_, container, type, reason, message);
}

Result<> PodSyncTask::Inspect() {
  return TakeIn(InspectPod(deps_.runtime, pod_->metadata().uid(),
                           memory_.inspected ? memory_.runtime.get() : nullptr, stop_));
}

Result<> PodSyncTask::TakeIn(Result<PodRuntimeStatus> looked_at) {
  ASSIGN_OR_RETURN(PodRuntimeStatus seen, std::move(looked_at));
  if (memory_.inspected) CountContainerEnds(pod_->spec(), *memory_.runtime, seen);
  memory_.runtime = std::make_shared<const PodRuntimeStatus>(std::move(seen));
  memory_.inspected = true;
  deps_.seen(pod_->metadata().uid(), memory_.runtime);
  return {};
}

void PodSyncTask::Again(milliseconds after) {
  if (!result_.again || after < *result_.again) result_.again = std::max(after, milliseconds(1));
}

void PodSyncTask::Wait(const std::string& container, const std::string& reason, const std::string& message) {
  memory_.waiting[container] = {reason, message};
}

Result<SyncResult> PodSyncTask::Run() {
  bool known = !memory_.runtime->sandboxes.empty() || !memory_.runtime->containers.empty();
  const bool unchanged = memory_.routine && deps_.unchanged(pod_->metadata().uid(), *memory_.runtime);
  if (known && !unchanged) RETURN_IF_ERROR(Inspect());
  if (auto handler = deps_.handler(pod_->spec().runtime_class_name())) memory_.handler = std::move(*handler);
  if (PastDeadline()) {
    ReportStatus(false);
    result_.ended = true;
    return result_;
  }
  if (known && unchanged) {  // all is as the last look left it, and has been told
    RefreshVolumes();
    return result_;
  }
  deps_.probes.Update(pod_, *memory_.runtime, node_.node_ips);
  PodActions actions = ComputePodActions(*pod_, *memory_.runtime, deps_.probes);
  PlanResize(actions);
  if (actions.restart_all && RestartAllHeldBack()) actions.restart_all = false;
  bool acts = actions.kill_pod || actions.restart_all || actions.create_sandbox || !actions.kill.empty() ||
              !actions.start.empty() || !actions.start_ephemeral.empty();
  if (acts) ReportBefore(actions);
  if (actions.PodIsOver()) {  // who takes it down tells how far that has come
    result_.ended = true;
    return result_;
  }
  if (acts) RETURN_IF_ERROR(Kill(actions));
  Resize();
  std::string sandbox_id = actions.sandbox_id;
  bool starts = !actions.start.empty() || !actions.start_ephemeral.empty();
  if (actions.create_sandbox || starts) {
    RETURN_IF_ERROR(Prepare(actions, sandbox_id));
    if (volumes_ && !sandbox_id.empty()) {
      ForgetOldBackoffs();
      for (const auto* names : {&actions.start_ephemeral, &actions.start}) {
        for (const std::string& name : *names) {
          corev1::Container storage;
          if (const corev1::Container* container = Find(name, storage); container && !stop_.stop_requested())
            Start(*container, sandbox_id);
        }
      }
    }
  } else {
    RefreshVolumes();
  }
  if (stop_.stop_requested()) return Error(Code::kCancelled, "pod sync was cut short");
  const bool only_starts = !actions.kill_pod && !actions.restart_all && actions.kill.empty() && !removed_;
  if (acts)
    RETURN_IF_ERROR(only_starts
                        ? TakeIn(WithContainers(deps_.runtime, *memory_.runtime, sandbox_id, made_, stop_))
                        : Inspect());
  for (auto it = memory_.waiting.begin(); it != memory_.waiting.end();) {
    const ContainerRecord* record = memory_.runtime->Latest(it->first);
    bool runs = record && record->state == cri::ContainerState::kRunning;
    it = runs ? memory_.waiting.erase(it) : std::next(it);
  }
  deps_.probes.Update(pod_, *memory_.runtime, node_.node_ips);
  corev1::PodStatus status = ReportStatus(false);
  result_.ended = status.phase() == "Succeeded" || status.phase() == "Failed";
  PlanQuickLook(actions);
  return result_;
}

// A container that is not what it was waits for no failure of the old one.
void PodSyncTask::ForgetOldBackoffs() {
  k8s::ForEachContainer(pod_->spec(), [this](const corev1::Container& container) {
    const ContainerRecord* last = memory_.runtime->Latest(container.name());
    if (last && last->state == cri::ContainerState::kExited && !last->hash.empty() &&
        !IsMadeFrom(container, last->hash))
      backoff_.Forget(pod_->metadata().uid() + "/" + container.name());
  });
}

// spec.activeDeadlineSeconds, from the time that the kubelet first saw the pod.
bool PodSyncTask::PastDeadline() {
  if (memory_.ending) return true;
  if (!pod_->spec().has_active_deadline_seconds()) return false;
  auto last = deps_.statuses.Get(pod_->metadata().uid());
  const corev1::PodStatus& status = last ? *last : pod_->status();
  WallTime begin = status.has_start_time() ? api::FromTime(status.start_time()) : clock_.Now();
  auto left = begin + seconds(pod_->spec().active_deadline_seconds()) - clock_.Now();
  if (left.count() > 0) {
    Again(std::chrono::duration_cast<milliseconds>(left) + milliseconds(1));
    return false;
  }
  memory_.ending =
      PodEnding{"DeadlineExceeded", "Pod was active on the node longer than the specified deadline", ""};
  Event("", "Normal", "DeadlineExceeded", memory_.ending->message);
  return true;
}

// The runtime tells of an end only at the next relist. Containers that are meant to end are looked at
// sooner, so that a short init container does not cost a second.
void PodSyncTask::PlanQuickLook(const PodActions& actions) {
  bool ends = pod_->spec().restart_policy() != "Always" ||
              (!actions.start.empty() &&
               std::any_of(pod_->spec().init_containers().begin(), pod_->spec().init_containers().end(),
                           [&](const auto& item) { return item.name() == actions.start.back(); }));
  if (!made_.empty()) memory_.quick_looks = ends ? kQuickLooks : 0;
  // More may be due at once: the next init container, or the first app container after the last of them.
  PodActions next = ComputePodActions(*pod_, *memory_.runtime, deps_.probes);
  bool more = next.PodIsOver();
  for (const std::string& name : next.start) more = more || !memory_.waiting.count(name);
  if (more && !result_.again) Again(actions.start.empty() ? kFirstQuickLook : milliseconds(1));
  if (memory_.quick_looks > 0) Again(kFirstQuickLook * (1 << (kQuickLooks - memory_.quick_looks--)));
}

Result<> PodSyncTask::Kill(const PodActions& actions) {
  ContainerKiller killer(deps_.runtime, deps_.handlers, deps_.executor, deps_.event, node_.node_ips, clock_);
  seconds grace = GraceOf(pod_->spec());
  if (actions.kill_pod) {
    if (!memory_.runtime->sandboxes.empty())
      Event("", "Normal", "SandboxChanged", "Pod sandbox changed, it will be killed and re-created.");
    return killer.KillPod(pod_.get(), *memory_.runtime, grace, stop_);
  }
  if (actions.restart_all) return RestartAll(killer, grace);
  for (const KillAction& kill : actions.kill) {
    KillRequest request{pod_.get(), kill.id, kill.name, HookAddress(), kill.message, grace};
    const corev1::Container* container = k8s::FindContainer(pod_->spec(), kill.name);
    if (container && kill.reason == KillReason::kLivenessProbe &&
        container->liveness_probe().has_termination_grace_period_seconds())
      request.grace = Span(container->liveness_probe().termination_grace_period_seconds());
    if (container && kill.reason == KillReason::kStartupProbe &&
        container->startup_probe().has_termination_grace_period_seconds())
      request.grace = Span(container->startup_probe().termination_grace_period_seconds());
    RETURN_IF_ERROR(killer.Kill(request, stop_));
  }
  if (!actions.kill.empty()) return Inspect();
  return {};
}

// An exit that asks for all to begin anew waits like any other restart.
bool PodSyncTask::RestartAllHeldBack() {
  PodRuntimeStatus one = *memory_.runtime;
  bool held = false;
  k8s::ForEachContainer(pod_->spec(), [&](const corev1::Container& container) {
    const ContainerRecord* record = memory_.runtime->Latest(container.name());
    if (!record) return;
    one.containers = {*record};
    if (ShouldRestartAll(pod_->spec(), one)) held = HeldBack(container, record) || held;
  });
  return held;
}

// What is left of it after a crash halfway is no obstacle: the exit that asks for it is the last to be
// forgotten.
Result<> PodSyncTask::RestartAll(ContainerKiller& killer, seconds grace) {
  memory_.restarting_all = true;
  RETURN_IF_ERROR(killer.KillContainers(pod_.get(), *memory_.runtime, grace, false, stop_));
  RETURN_IF_ERROR(Inspect());
  ReportStatus(false);  // the API counts the runs from now on
  PodRuntimeStatus asks = *memory_.runtime;
  for (bool causes : {false, true}) {
    for (const ContainerRecord& record : memory_.runtime->containers) {
      asks.containers = {record};
      if (ShouldRestartAll(pod_->spec(), asks) == causes)
        RETURN_IF_ERROR(deps_.runtime.RemoveContainer(record.id, stop_));
    }
  }
  memory_.restarting_all = false;
  memory_.waiting.clear();
  Again(milliseconds(1));
  return {};
}

const corev1::Container* PodSyncTask::Find(const std::string& name, corev1::Container& storage) const {
  if (const corev1::Container* container = k8s::FindContainer(pod_->spec(), name)) return container;
  for (const auto& ephemeral : pod_->spec().ephemeral_containers()) {
    if (ephemeral.ephemeral_container_common().name() != name) continue;
    storage = FromEphemeral(ephemeral);
    return &storage;
  }
  return nullptr;
}

}  // namespace keelson::kubelet
