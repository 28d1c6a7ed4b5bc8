#include "kubelet/pod/pod_sync_task.h"

#include <sys/stat.h>

#include <algorithm>

#include "kubelet/container/container_config.h"
#include "kubelet/container/sandbox_config.h"
#include "kubelet/pod/container_killer.h"
#include "kubelet/pod/termination_message.h"
#include "lib/api/meta.h"
#include "lib/base/file.h"
#include "lib/k8s/pod_resources.h"
#include "lib/k8s/pod_util.h"

namespace keelson::kubelet {

using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

constexpr int kQuickLooks = 5;
constexpr milliseconds kFirstQuickLook(30);
constexpr milliseconds kRetry(2000);

Result<std::string> MakeMessageFile(const NodeContext& node, const std::string& uid,
                                    const std::string& container) {
  std::string dir = node.paths.Container(uid, container);
  RETURN_IF_ERROR(MakeDirs(dir, 0750));
  std::string path = dir + "/" + api::RandomSuffix(8);
  RETURN_IF_ERROR(WriteFile(path, ""));
  // Whatever user the container runs as writes to it.
  if (::chmod(path.c_str(), 0666) != 0) return ErrnoError("chmod " + path);
  return path;
}

DnsConfig HostDns(const NodeContext& node) {
  if (node.resolv_conf.empty()) return {};
  auto text = ReadFile(node.resolv_conf);
  return text ? ParseResolvConf(*text) : DnsConfig();
}

// The pod as variables and volumes see it: with the addresses that its sandbox has got by now.
corev1::Pod WithAddresses(const corev1::Pod& pod, const NodeContext& node, std::vector<std::string> ips) {
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

}  // namespace

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
  ASSIGN_OR_RETURN(memory_.runtime, InspectPod(deps_.runtime, pod_->metadata().uid(),
                                               memory_.inspected ? &memory_.runtime : nullptr, stop_));
  memory_.inspected = true;
  deps_.seen(pod_->metadata().uid(), memory_.runtime);
  return {};
}

corev1::PodStatus PodSyncTask::ReportStatus(bool terminal) {
  // On top of what was said last: the API may not have shown it to us yet.
  corev1::Pod base = *pod_;
  if (auto last = deps_.statuses.Get(pod_->metadata().uid())) {
    for (const auto& condition : pod_->status().conditions())
      if (!k8s::FindCondition(*last, condition.type())) *last->add_conditions() = condition;
    *base.mutable_status() = std::move(*last);
  }
  StatusInput input{base,
                    memory_.runtime,
                    deps_.probes,
                    memory_.waiting,
                    IsInitialized(*pod_, memory_.runtime, deps_.probes),
                    terminal,
                    node_.node_ips,
                    options_.runtime_name,
                    TerminationMessage,
                    clock_.Now()};
  corev1::PodStatus status = GenerateStatus(input);
  if (memory_.ending) ApplyEnding(*memory_.ending, clock_.Now(), status);
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
  bool known = !memory_.runtime.sandboxes.empty() || !memory_.runtime.containers.empty();
  if (known) RETURN_IF_ERROR(Inspect());
  deps_.probes.Update(pod_, memory_.runtime);
  PodActions actions = ComputePodActions(*pod_, memory_.runtime, deps_.probes);
  bool acts = actions.kill_pod || actions.create_sandbox || !actions.kill.empty() || !actions.start.empty() ||
              !actions.start_ephemeral.empty();
  if (acts && !known) ReportStatus(false);  // people see ContainerCreating meanwhile
  if (acts) RETURN_IF_ERROR(Kill(actions));
  std::string sandbox_id = actions.sandbox_id;
  bool starts = !actions.start.empty() || !actions.start_ephemeral.empty();
  if (actions.create_sandbox || starts) {
    RETURN_IF_ERROR(Prepare(actions, sandbox_id));
    if (volumes_ && !sandbox_id.empty()) {
      for (const auto* names : {&actions.start_ephemeral, &actions.start}) {
        for (const std::string& name : *names) {
          corev1::Container storage;
          if (const corev1::Container* container = Find(name, storage); container && !stop_.stop_requested())
            Start(*container, sandbox_id);
        }
      }
    }
  } else if (!pod_->spec().volumes().empty()) {
    MountVolumes(memory_.runtime.Ips());  // refreshes what has changed
    NoteVolumes();
  }
  if (stop_.stop_requested()) return Error(Code::kCancelled, "pod sync was cut short");
  if (acts) RETURN_IF_ERROR(Inspect());
  for (auto it = memory_.waiting.begin(); it != memory_.waiting.end();) {
    const ContainerRecord* record = memory_.runtime.Latest(it->first);
    bool runs = record && record->state == cri::ContainerState::kRunning;
    it = runs ? memory_.waiting.erase(it) : std::next(it);
  }
  deps_.probes.Update(pod_, memory_.runtime);
  corev1::PodStatus status = ReportStatus(false);
  result_.ended = status.phase() == "Succeeded" || status.phase() == "Failed";
  PlanQuickLook(actions);
  return result_;
}

// The runtime tells of an end only at the next relist. Containers that are meant to end are looked at
// sooner, so that a short init container does not cost a second.
void PodSyncTask::PlanQuickLook(const PodActions& actions) {
  bool ends = pod_->spec().restart_policy() != "Always" ||
              (!actions.start.empty() &&
               std::any_of(pod_->spec().init_containers().begin(), pod_->spec().init_containers().end(),
                           [&](const auto& item) { return item.name() == actions.start.back(); }));
  if (!actions.start.empty()) memory_.quick_looks = ends ? kQuickLooks : 0;
  // More may be due at once: the next init container, or the first app container after the last of them.
  PodActions next = ComputePodActions(*pod_, memory_.runtime, deps_.probes);
  bool more = next.kill_pod && memory_.runtime.AnyRunning();
  for (const std::string& name : next.start) more = more || !memory_.waiting.count(name);
  if (more && !result_.again) Again(actions.start.empty() ? kFirstQuickLook : milliseconds(1));
  if (memory_.quick_looks > 0) Again(kFirstQuickLook * (1 << (kQuickLooks - memory_.quick_looks--)));
}

Result<> PodSyncTask::Kill(const PodActions& actions) {
  ContainerKiller killer(deps_.runtime, deps_.handlers, deps_.executor, deps_.event, clock_);
  seconds grace(pod_->spec().has_termination_grace_period_seconds()
                    ? pod_->spec().termination_grace_period_seconds()
                    : 30);
  if (actions.kill_pod) {
    if (!actions.create_sandbox) {
      deps_.probes.StopLiveness(pod_->metadata().uid());
      return killer.KillPod(pod_.get(), memory_.runtime, grace, stop_);
    }
    if (!memory_.runtime.sandboxes.empty())
      Event("", "Normal", "SandboxChanged", "Pod sandbox changed, it will be killed and re-created.");
    return killer.KillPod(pod_.get(), memory_.runtime, grace, stop_);
  }
  std::vector<std::string> ips = memory_.runtime.Ips();
  for (const KillAction& kill : actions.kill) {
    KillRequest request{pod_.get(), kill.id, kill.name, ips.empty() ? "" : ips.front(), kill.message, grace};
    const corev1::Container* container = k8s::FindContainer(pod_->spec(), kill.name);
    if (container && kill.reason == KillReason::kLivenessProbe &&
        container->liveness_probe().has_termination_grace_period_seconds())
      request.grace = seconds(container->liveness_probe().termination_grace_period_seconds());
    if (container && kill.reason == KillReason::kStartupProbe &&
        container->startup_probe().has_termination_grace_period_seconds())
      request.grace = seconds(container->startup_probe().termination_grace_period_seconds());
    RETURN_IF_ERROR(killer.Kill(request, stop_));
  }
  if (!actions.kill.empty()) return Inspect();
  return {};
}

void PodSyncTask::MountVolumes(const std::vector<std::string>& pod_ips) {
  corev1::Pod pod = WithAddresses(*pod_, node_, pod_ips);
  volumes_ = deps_.volumes.Mount(pod, node_, stop_);
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
  uint32_t attempt = actions.create_sandbox              ? actions.attempt
                     : memory_.runtime.sandboxes.empty() ? 0
                                                         : memory_.runtime.sandboxes.front().metadata.attempt;
  sandbox_config_ = BuildSandboxConfig(*pod_, node_, HostDns(node_), deps_.cgroups.Parent(*pod_), attempt);
  if (!actions.create_sandbox) {
    MountVolumes(memory_.runtime.Ips());
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

Result<> PodSyncTask::CreateSandbox(std::string& sandbox_id) {
  auto id = deps_.runtime.RunPodSandbox(sandbox_config_, "", stop_);
  if (!id) {
    Event("", "Warning", "FailedCreatePodSandBox", "Failed to create pod sandbox: " + id.error().message());
    Again(kRetry);
    return id.error();
  }
  // Its address, for the containers' variables and for the status, which goes out while they start.
  RETURN_IF_ERROR(Inspect());
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

bool PodSyncTask::HeldBack(const corev1::Container& container, const ContainerRecord* last) {
  if (!last || last->state != cri::ContainerState::kExited) return false;
  std::string key = pod_->metadata().uid() + "/" + container.name();
  WallTime end(std::chrono::duration_cast<WallTime::duration>(std::chrono::nanoseconds(last->finished_at)));
  milliseconds left = backoff_.Left(key, end);
  if (left.count() == 0) {
    backoff_.Next(key);
    return false;
  }
  auto wait = std::chrono::duration_cast<seconds>(backoff_.Current(key));
  std::string text = wait.count() >= 60
                         ? std::to_string(wait.count() / 60) + "m" + std::to_string(wait.count() % 60) + "s"
                         : std::to_string(wait.count()) + "s";
  std::string who = "restarting failed container=" + container.name() + " pod=" + pod_->metadata().name() +
                    "_" + pod_->metadata().namespace_() + "(" + pod_->metadata().uid() + ")";
  bool told = memory_.waiting.count(container.name()) &&
              memory_.waiting.at(container.name()).reason == "CrashLoopBackOff";
  if (!told)
    Event(container.name(), "Warning", "BackOff",
          "Back-off restarting failed container " + container.name() + " in pod " + pod_->metadata().name() +
              "_" + pod_->metadata().namespace_() + "(" + pod_->metadata().uid() + ")");
  Wait(container.name(), "CrashLoopBackOff", "back-off " + text + " " + who);
  Again(left);
  return true;
}

std::vector<corev1::Secret> PodSyncTask::PullSecrets() {
  std::vector<corev1::Secret> secrets;
  for (const auto& ref : pod_->spec().image_pull_secrets()) {
    auto secret = deps_.objects.GetSecret(pod_->metadata().namespace_(), ref.name());
    if (secret)
      secrets.push_back(**secret);
    else
      Event("", "Warning", "FailedToRetrieveImagePullSecret",
            "Unable to retrieve some image pull secrets (" + ref.name() +
                "); attempting to pull the image may not succeed.");
  }
  return secrets;
}

bool PodSyncTask::EnsureImage(const corev1::Container& container, EnsuredImage& image) {
  std::vector<corev1::Secret> secrets = PullSecrets();
  ImageFailure failure;
  ImageRequest request{*pod_,
                       container.image(),
                       container.image_pull_policy(),
                       sandbox_config_,
                       secrets,
                       [&](const std::string& type, const std::string& reason, const std::string& message) {
                         deps_.event(*pod_, container.name(), type, reason, message);
                       }};
  if (deps_.images.Ensure(request, stop_, image, failure)) return true;
  if (stop_.stop_requested()) return false;
  Wait(container.name(), failure.reason, failure.message);
  Again(failure.retry.count() > 0 ? failure.retry : kRetry * 5);
  return false;
}

void PodSyncTask::Start(const corev1::Container& container, const std::string& sandbox_id) {
  const ContainerRecord* last = memory_.runtime.Latest(container.name());
  if (HeldBack(container, last)) return;
  EnsuredImage image;
  if (!EnsureImage(container, image)) return;
  int restarts = last ? last->restart_count + 1 : 0;
  if (!last) {  // its record may be gone; the API still counts
    const corev1::ContainerStatus* known = k8s::FindContainerStatus(pod_->status(), container.name());
    if (known && (known->state().has_terminated() || known->last_state().has_terminated() ||
                  known->state().has_running()))
      restarts = known->restart_count() + 1;
  }
  if (last && last->state == cri::ContainerState::kCreated) restarts = last->restart_count + 1;
  bool config_error = false;
  auto id = Create(container, image, restarts, sandbox_id, config_error);
  if (!id) {
    if (stop_.stop_requested()) return;
    const char* reason = config_error ? "CreateContainerConfigError" : "CreateContainerError";
    Wait(container.name(), reason, id.error().message());
    Event(container.name(), "Warning", "Failed", "Error: " + id.error().message());
    Again(kRetry);
    return;
  }
  Event(container.name(), "Normal", "Created", "Container created");
  if (auto started = deps_.runtime.StartContainer(*id, stop_); !started) {
    Wait(container.name(), "RunContainerError", started.error().message());
    Event(container.name(), "Warning", "Failed", "Error: " + started.error().message());
    Again(kRetry);
    return;
  }
  Event(container.name(), "Normal", "Started", "Container started");
  memory_.waiting.erase(container.name());
  if (auto done = RunPostStart(container, *id); !done) {
    Event(container.name(), "Warning", "FailedPostStartHook",
          "PostStartHook failed: " + done.error().message());
    Wait(container.name(), "PostStartHookError", done.error().message());
    ContainerKiller killer(deps_.runtime, deps_.handlers, deps_.executor, deps_.event, clock_);
    seconds grace(pod_->spec().termination_grace_period_seconds());
    (void)killer.Kill({pod_.get(), *id, container.name(), "", "FailedPostStartHook", grace}, stop_);
    Again(kRetry);
  }
}

Result<std::string> PodSyncTask::Create(const corev1::Container& container, const EnsuredImage& image,
                                        int restarts, const std::string& sandbox_id, bool& config_error) {
  const std::string& uid = pod_->metadata().uid();
  std::vector<std::string> ips = memory_.runtime.Ips();
  corev1::Pod pod = WithAddresses(*pod_, node_, ips);
  ASSIGN_OR_RETURN(std::string message_file, MakeMessageFile(node_, uid, container.name()));
  std::string hosts_file = node_.paths.EtcHosts(uid);
  auto host_file = pod_->spec().host_network() ? ReadFile("/etc/hosts") : Result<std::string>(std::string());
  RETURN_IF_ERROR(WriteFile(hosts_file, EtcHosts(pod, node_, ips, host_file.value_or(""))));
  // The runtime makes the log file, in a directory that has to be there.
  RETURN_IF_ERROR(MakeDirs(sandbox_config_.log_directory + "/" + container.name()));
  SubPathFunction sub_path = [&](const std::string& volume_path, const std::string& path,
                                 const std::string& volume, const std::string& name, int index,
                                 bool read_only) {
    return deps_.volumes.SubPath(node_.paths, uid, volume_path, path, volume, name, index, read_only);
  };
  ContainerInput input{pod,       container, image.image,  image.ref, restarts,
                       *volumes_, sub_path,  message_file, hosts_file};
  auto config = BuildContainerConfig(input, deps_.objects, node_);
  config_error = !config;
  if (!config) return config.error();
  return deps_.runtime.CreateContainer(sandbox_id, *config, sandbox_config_, stop_);
}

Result<> PodSyncTask::RunPostStart(const corev1::Container& container, const std::string& id) {
  if (!container.lifecycle().has_post_start()) return {};
  std::vector<std::string> ips = pod_->spec().host_network() ? node_.node_ips : memory_.runtime.Ips();
  HandlerTarget target{pod_->spec(), id, container.name(), ips.empty() ? "" : ips.front()};
  return deps_.handlers.Run(container.lifecycle().post_start(), target, seconds(0), stop_);
}

}  // namespace keelson::kubelet
