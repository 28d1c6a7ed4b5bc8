#include "kubelet/pod/pod_sync_task.h"

#include <algorithm>

#include "kubelet/container/container_config.h"
#include "kubelet/container/sandbox_config.h"
#include "kubelet/pod/container_killer.h"
#include "kubelet/pod/container_metrics.h"
#include "kubelet/pod/termination_message.h"
#include "kubelet/status/own_conditions.h"
#include "lib/api/meta.h"
#include "lib/base/file.h"
#include "lib/base/wall_time.h"
#include "lib/k8s/field_error.h"
#include "lib/k8s/pod_util.h"

namespace keelson::kubelet {

using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

constexpr int kQuickLooks = 5;
constexpr milliseconds kFirstQuickLook(30);
constexpr milliseconds kRetry(2000);

DnsConfig HostDns(const NodeContext& node) {
  if (node.resolv_conf.empty()) return {};
  auto text = ReadFile(node.resolv_conf);
  return text ? ParseResolvConf(*text) : DnsConfig();
}

// Whether the API already shows the pod with the addresses that it has.
bool HasAddresses(const corev1::Pod& pod, const NodeContext& node, const std::vector<std::string>& ips) {
  const auto same = [](const auto& shown, const std::vector<std::string>& are) {
    return std::equal(shown.begin(), shown.end(), are.begin(), are.end(),
                      [](const auto& item, const std::string& ip) { return item.ip() == ip; });
  };
  return same(pod.status().host_ips(), node.node_ips) &&
         same(pod.status().pod_ips(), pod.spec().host_network() ? node.node_ips : ips);
}

}  // namespace

corev1::Pod PodWithAddresses(const corev1::Pod& pod, const NodeContext& node, std::vector<std::string> ips) {
  corev1::Pod out = pod;
  auto& status = *out.mutable_status();
  if (!node.node_ips.empty()) status.set_host_ip(node.node_ips.front());
  status.clear_host_ips();
  for (const std::string& ip : node.node_ips) status.add_host_ips()->set_ip(ip);
  if (pod.spec().host_network()) ips = node.node_ips;
  if (!ips.empty()) status.set_pod_ip(ips.front());
  status.clear_pod_ips();
  for (const std::string& ip : ips) status.add_pod_ips()->set_ip(ip);
  return out;
}

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
  memory_.runtime = std::make_shared<const PodRuntimeStatus>(std::move(seen));
  memory_.inspected = true;
  deps_.seen(pod_->metadata().uid(), memory_.runtime);
  return {};
}

corev1::PodStatus PodSyncTask::ReportStatus(bool terminal) {
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
  if (memory_.ending) base.mutable_status()->set_phase("Failed");  // conditions follow the phase
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
  input.image_volumes = &memory_.image_volumes;
  corev1::PodStatus status = GenerateStatus(input);
  if (deps_.complete_status) deps_.complete_status(pod_->metadata().uid(), status);
  if (memory_.ending) ApplyEnding(*memory_.ending, clock_.Now(), status);
  ReportResize(base, status);
  deps_.statuses.Set(pod_, status);
  return status;
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
  deps_.probes.Update(pod_, *memory_.runtime);
  PodActions actions = ComputePodActions(*pod_, *memory_.runtime, deps_.probes);
  PlanResize(actions);
  if (actions.restart_all && RestartAllHeldBack()) actions.restart_all = false;
  bool acts = actions.kill_pod || actions.restart_all || actions.create_sandbox || !actions.kill.empty() ||
              !actions.start.empty() || !actions.start_ephemeral.empty();
  if (acts && !known) ReportStatus(false);  // people see ContainerCreating meanwhile
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
  deps_.probes.Update(pod_, *memory_.runtime);
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
        last->hash != ContainerHash(container))
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
  bool more = next.kill_pod && memory_.runtime->AnyRunning();
  for (const std::string& name : next.start) more = more || !memory_.waiting.count(name);
  if (more && !result_.again) Again(actions.start.empty() ? kFirstQuickLook : milliseconds(1));
  if (memory_.quick_looks > 0) Again(kFirstQuickLook * (1 << (kQuickLooks - memory_.quick_looks--)));
}

Result<> PodSyncTask::Kill(const PodActions& actions) {
  ContainerKiller killer(deps_.runtime, deps_.handlers, deps_.executor, deps_.event, clock_);
  seconds grace = GraceOf(pod_->spec());
  if (actions.kill_pod) {
    if (!actions.create_sandbox)
      deps_.probes.StopLiveness(pod_->metadata().uid());
    else if (!memory_.runtime->sandboxes.empty())
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

void PodSyncTask::MountVolumes(const std::vector<std::string>& pod_ips) {
  volumes_ = HasAddresses(*pod_, node_, pod_ips)
                 ? deps_.volumes.Mount(*pod_, node_, stop_)
                 : deps_.volumes.Mount(PodWithAddresses(*pod_, node_, pod_ips), node_, stop_);
}

void PodSyncTask::RefreshVolumes() {
  if (pod_->spec().volumes().empty()) return;
  MountVolumes(memory_.runtime->Ips());
  NoteVolumes();
}

void PodSyncTask::NoteVolumes() {
  if (volumes_) {
    memory_.mount_error.clear();
    return;
  }
  if (volumes_.error().Is(Code::kCancelled)) return;
  if (memory_.mount_error != volumes_.error().message())
    Event("", "Warning", "FailedMount", volumes_.error().message());
  memory_.mount_error = volumes_.error().message();
  Again(kRetry);
}

Result<> PodSyncTask::Prepare(const PodActions& actions, std::string& sandbox_id) {
  const metav1::ObjectMeta& meta = pod_->metadata();
  RETURN_IF_ERROR(MakeDirs(node_.paths.Pod(meta.uid()), 0750));
  RETURN_IF_ERROR(MakeDirs(node_.paths.PodLogs(meta.namespace_(), meta.name(), meta.uid())));
  if (auto made = deps_.cgroups.Ensure(*pod_, node_); !made) {
    Event("", "Warning", "FailedCreatePodContainer",
          "unable to ensure pod container exists: failed to create container: " + made.error().message());
    return made;
  }
  uint32_t attempt = actions.create_sandbox ? actions.attempt
                     : memory_.runtime->sandboxes.empty()
                         ? 0
                         : memory_.runtime->sandboxes.front().metadata.attempt;
  if (auto known = BuildSandbox(actions.create_sandbox, attempt); !known) {
    Event("", "Warning", "FailedCreatePodSandBox",
          "Failed to create pod sandbox: " + known.error().message());
    Again(kRetry);
    return known;
  }
  if (!actions.create_sandbox) {
    MountVolumes(memory_.runtime->Ips());
    NoteVolumes();
    return {};
  }
  Result<> created;
  std::vector<std::function<void()>> tasks = {[&] { created = CreateSandbox(sandbox_id); }};
  if (!pod_->spec().volumes().empty()) tasks.push_back([this] { MountVolumes({}); });
  deps_.executor.RunAll(std::move(tasks));
  NoteVolumes();
  return created;
}

// What the runtime is told of the pod as a whole: also new containers of a sandbox that is there need it.
Result<> PodSyncTask::BuildSandbox(bool fresh, uint32_t attempt) {
  ASSIGN_OR_RETURN(memory_.handler, deps_.handler(pod_->spec().runtime_class_name()));
  DnsConfig host_dns = HostDns(node_);
  ASSIGN_OR_RETURN(sandbox_config_,
                   BuildSandboxConfig(*pod_, node_, host_dns, deps_.cgroups.Parent(*pod_), attempt));
  ASSIGN_OR_RETURN(sandbox_config_.namespaces.user_ids, deps_.user_namespaces.Get(*pod_));
  if (sandbox_config_.namespaces.user_ids) {
    const cri::RuntimeHandler* handler = node_.Handler(memory_.handler);
    if (!handler)
      return Error(Code::kInvalid, "the handler " + k8s::Quote(memory_.handler) + " is not known");
    if (!handler->user_namespaces)
      return Error(Code::kInvalid, memory_.handler.empty()
                                       ? "default runtime handler does not support user namespaces"
                                       : "RuntimeClass handler " + k8s::Quote(memory_.handler) +
                                             " does not support user namespaces");
  }
  if (fresh)
    for (const auto& [reason, message] : PodDns(*pod_, node_, host_dns).left_out)
      Event("", "Warning", reason.c_str(), message);
  return {};
}

Result<> PodSyncTask::CreateSandbox(std::string& sandbox_id) {
  auto id = [&] {
    StartGate::Pass pass(deps_.starts, StartGate::Kind::kSandbox);
    return deps_.runtime.RunPodSandbox(sandbox_config_, memory_.handler, stop_);
  }();
  if (sandbox_config_.namespaces.user_ids) CountUserNamespaces(id.has_value());
  if (!id) {
    Event("", "Warning", "FailedCreatePodSandBox", "Failed to create pod sandbox: " + id.error().message());
    Again(kRetry);
    return id.error();
  }
  // Its address, for the containers' variables and for the status, which goes out while they start.
  RETURN_IF_ERROR(TakeIn(WithSandbox(deps_.runtime, *memory_.runtime, *id, stop_)));
  sandbox_id = *id;
  ReportStatus(false);
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
