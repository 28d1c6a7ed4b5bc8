// PodSyncTask's way from a name in the plan to a container that runs.
#include <sys/stat.h>

#include <algorithm>

#include "kubelet/container/container_config.h"
#include "kubelet/container/labels.h"
#include "kubelet/container/network_files.h"
#include "kubelet/gc/containers.h"
#include "kubelet/pod/container_killer.h"
#include "kubelet/pod/container_metrics.h"
#include "kubelet/pod/pod_sync_task.h"
#include "lib/api/meta.h"
#include "lib/base/file.h"
#include "lib/k8s/field_error.h"
#include "lib/k8s/pods/pod_util.h"

namespace keelson::kubelet {

using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

constexpr milliseconds kRetry(2000), kKillEnds(100);
constexpr std::chrono::seconds kRemoval(20);

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

}  // namespace

bool PodSyncTask::HeldBack(const corev1::Container& container, const ContainerRecord* last) {
  if (!last || last->state != cri::ContainerState::kExited) return false;
  std::string key = pod_->metadata().uid() + "/" + container.name();
  WallTime end(std::chrono::duration_cast<WallTime::duration>(std::chrono::nanoseconds(last->finished_at)));
  milliseconds left = backoff_.Left(key, end);
  if (left.count() == 0) {
    backoff_.Next(key, end);
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

bool PodSyncTask::EnsureImage(const corev1::Container& container, const std::string& name,
                              const std::string& policy, EnsuredImage& image) {
  std::vector<corev1::Secret> secrets = PullSecrets();
  ImageFailure failure;
  ImageRequest request{*pod_,
                       name,
                       policy,
                       sandbox_config_,
                       secrets,
                       [&](const std::string& type, const std::string& reason, const std::string& message) {
                         deps_.event(*pod_, container.name(), type, reason, message);
                       }};
  if (deps_.images.Ensure(request, stop_, image, failure)) return true;
  if (stop_.stop_requested()) return false;
  Wait(container.name(), failure.reason, failure.message);
  CountContainerFailure(pod_->spec(), container.name(), failure.reason);
  // Soon after a pull has failed people see that the next one is waited for.
  const bool waits = failure.reason == "ImagePullBackOff";
  Again(failure.retry.count() == 0 ? kRetry * 5 : waits ? failure.retry : std::min(failure.retry, kRetry));
  return false;
}

// Volumes whose content is an image: pulled like the container's own, mounted by the runtime.
bool PodSyncTask::EnsureImageVolumes(const corev1::Container& container) {
  for (const auto& mount : container.volume_mounts()) {
    for (const auto& volume : pod_->spec().volumes()) {
      if (volume.name() != mount.name() || !volume.volume_source().has_image()) continue;
      CountImageVolume();
      const corev1::ImageVolumeSource& source = volume.volume_source().image();
      EnsuredImage image;
      if (!EnsureImage(container, source.reference(), source.pull_policy(), image)) return false;
      (*volumes_)[volume.name()] = {"", false, true, image.ref};
      memory_.image_volumes[volume.name()] = image.ref;
    }
  }
  return true;
}

// Made by a kubelet that did not live to start it: no run, and nothing to keep. The runtime may still be at
// it, and its name is taken. containerd 1.6 keeps a start whose caller has died half way, with a process that
// waits for its command, and neither stops nor removes that. Once there has been time for a start to end by
// itself it is killed here, and can be removed at the next look.
bool PodSyncTask::ForgetUnstarted(const corev1::Container& container, const ContainerRecord& made) {
  auto removed = RemoveRun(deps_.runtime, node_.paths, made, stop_);
  if (removed) {
    memory_.refused.erase(made.id);
    return true;
  }
  const SteadyTime since = memory_.refused.try_emplace(made.id, clock_.SteadyNow()).first->second;
  const bool half_started = clock_.SteadyNow() - since >= kRetry;
  Again(half_started && deps_.cgroups.KillContainer(*pod_, made.id) ? kKillEnds : kRetry);
  log::Debug("Cannot remove a container that never ran", {{"pod", api::KeyOf(*pod_)},
                                                          {"container", container.name()},
                                                          {"id", made.id},
                                                          {"error", removed.error()}});
  return false;
}

// A container that the runtime does not let go at all is left behind for the next number. The time counts
// from the first refusal that this kubelet has heard: how old the container is says nothing of how long a
// busy runtime has been asked.
bool PodSyncTask::HasBeenRefusedLong(const ContainerRecord& made) const {
  auto since = memory_.refused.find(made.id);
  if (since == memory_.refused.end() || clock_.SteadyNow() - since->second < kRemoval) return false;
  log::Warn("Leaving a container that never ran", {{"pod", api::KeyOf(*pod_)}, {"id", made.id}});
  return true;
}

void PodSyncTask::Start(const corev1::Container& container, const std::string& sandbox_id) {
  const ContainerRecord* last = memory_.runtime->Latest(container.name());
  if (HeldBack(container, last)) return;
  CountContainerStart(pod_->spec(), container.name());
  EnsuredImage image;
  if (!EnsureImageVolumes(container)) return;
  if (!EnsureImage(container, container.image(), container.image_pull_policy(), image)) return;
  int restarts = last ? last->restart_count + 1 : 0;
  if (!last) {  // its record may be gone; the API still counts
    auto told = deps_.statuses.Get(pod_->metadata().uid());
    const corev1::ContainerStatus* known =
        k8s::FindContainerStatus(told ? *told : pod_->status(), container.name());
    if (known && (known->state().has_terminated() || known->last_state().has_terminated() ||
                  known->state().has_running()))
      restarts = known->restart_count() + 1;
  }
  if (last && last->state == cri::ContainerState::kCreated) {
    removed_ = true;
    if (ForgetUnstarted(container, *last))
      restarts = last->restart_count;
    else if (!HasBeenRefusedLong(*last))
      return;
  }
  bool config_error = false;
  auto id = Create(container, image, restarts, sandbox_id, config_error);
  if (!id) {
    if (stop_.stop_requested()) return;
    const char* reason = config_error ? "CreateContainerConfigError" : "CreateContainerError";
    Wait(container.name(), reason, id.error().message());
    CountContainerFailure(pod_->spec(), container.name(), reason);
    Event(container.name(), "Warning", "Failed", "Error: " + id.error().message());
    Again(kRetry);
    return;
  }
  made_.push_back(*id);
  Event(container.name(), "Normal", "Created", "Container created");
  auto started = [&] {
    StartGate::Pass pass(deps_.starts, StartGate::Kind::kContainer);
    return deps_.runtime.StartContainer(*id, stop_);
  }();
  if (!started) {
    Wait(container.name(), "RunContainerError", started.error().message());
    CountContainerFailure(pod_->spec(), container.name(), "RunContainerError");
    Event(container.name(), "Warning", "Failed", "Error: " + started.error().message());
    Again(kRetry);
    return;
  }
  Event(container.name(), "Normal", "Started", "Container started");
  memory_.waiting.erase(container.name());
  if (auto done = RunPostStart(container, *id); !done && !stop_.stop_requested()) {
    log::Warn("PostStartHook failed",
              {{"pod", api::KeyOf(*pod_)}, {"container", container.name()}, {"error", done.error()}});
    // What a server has answered may be a secret: it does not go into events.
    Event(container.name(), "Warning", "FailedPostStartHook", "PostStartHook failed");
    Wait(container.name(), "PostStartHookError", done.error().message());
    ContainerKiller killer(deps_.runtime, deps_.handlers, deps_.executor, deps_.event, node_.node_ips,
                           clock_);
    (void)killer.Kill(
        {pod_.get(), *id, container.name(), HookAddress(), "FailedPostStartHook", GraceOf(pod_->spec())},
        stop_);
    Again(kRetry);
  }
}

// The container whose processes a debug container wants to see; "" for none.
Result<std::string> PodSyncTask::DebugTarget(const std::string& container) const {
  for (const auto& ephemeral : pod_->spec().ephemeral_containers()) {
    const std::string& target = ephemeral.target_container_name();
    if (ephemeral.ephemeral_container_common().name() != container || target.empty()) continue;
    const ContainerRecord* record = memory_.runtime->Latest(target);
    if (!record || record->state != cri::ContainerState::kRunning)
      return Error(Code::kUnavailable, "unable to find target container " + k8s::Quote(target));
    return record->id;
  }
  return std::string();
}

Result<std::string> PodSyncTask::Create(const corev1::Container& container, const EnsuredImage& image,
                                        int restarts, const std::string& sandbox_id, bool& config_error) {
  ASSIGN_OR_RETURN(std::string message_file,
                   MakeMessageFile(node_, pod_->metadata().uid(), container.name()));
  auto id = CreateWith(message_file, container, image, restarts, sandbox_id, config_error);
  if (!id) (void)RemoveFile(message_file);  // the next try has its own
  return id;
}

Result<std::string> PodSyncTask::CreateWith(const std::string& message_file,
                                            const corev1::Container& container, const EnsuredImage& image,
                                            int restarts, const std::string& sandbox_id, bool& config_error) {
  const std::string& uid = pod_->metadata().uid();
  std::vector<std::string> ips = memory_.runtime->Ips();
  corev1::Pod pod = PodWithAddresses(*pod_, node_, ips);
  std::string hosts_file = node_.paths.EtcHosts(uid);
  auto host_file = pod_->spec().host_network() ? ReadFile("/etc/hosts") : Result<std::string>(std::string());
  const std::string hosts = EtcHosts(pod, node_, ips, host_file.value_or(""));
  // In place, since other containers have it mounted; and only if need be: a full disk would leave it empty.
  if (auto known = ReadFile(hosts_file); !known || *known != hosts)
    RETURN_IF_ERROR(WriteFile(hosts_file, hosts));
  // The runtime makes the log file, in a directory that has to be there.
  RETURN_IF_ERROR(MakeDirs(sandbox_config_.log_directory + "/" + container.name()));
  SubPathFunction sub_path = [&](const std::string& volume_path, const std::string& path,
                                 const std::string& volume, const std::string& name, int index,
                                 bool read_only) {
    return deps_.volumes.SubPath(node_.paths, {uid, volume_path, path, volume, name, index, read_only});
  };
  ContainerInput input{pod,        container,       image.image, image.ref,
                       restarts,   *volumes_,       sub_path,    message_file,
                       hosts_file, memory_.handler, "",          sandbox_config_.namespaces.user_ids};
  ASSIGN_OR_RETURN(input.target_id, DebugTarget(container.name()));
  auto config = BuildContainerConfig(input, deps_.objects, node_);
  if (config && deps_.configure)
    if (auto done = deps_.configure(*pod_, container, *config, stop_); !done) config = done.error();
  config_error = !config;
  if (!config) return config.error();
  config->annotations[kResourcesAnnotation] = ResourcesText(container.resources());
  if (pod_->spec().has_resources())
    config->annotations[kPodResourcesAnnotation] = ResourcesText(pod_->spec().resources());
  StartGate::Pass pass(deps_.starts, StartGate::Kind::kContainer);
  const auto images = std::count_if(config->mounts.begin(), config->mounts.end(),
                                    [](const cri::Mount& mount) { return !mount.image.empty(); });
  auto made = deps_.runtime.CreateContainer(sandbox_id, *config, sandbox_config_, stop_);
  CountImageVolumesMounted(static_cast<int>(images), made.has_value());
  return made;
}

Result<> PodSyncTask::RunPostStart(const corev1::Container& container, const std::string& id) {
  if (!container.lifecycle().has_post_start()) return {};
  return deps_.handlers.Run(container.lifecycle().post_start(),
                            HookTarget(*pod_, id, container.name(), HookAddress(), deps_.event), seconds(0),
                            stop_);
}

// Where httpGet hooks ask.
std::string PodSyncTask::HookAddress() const {
  const std::vector<std::string> ips = PodIps(pod_->spec(), *memory_.runtime, node_.node_ips);
  return ips.empty() ? "" : ips.front();
}

}  // namespace keelson::kubelet
