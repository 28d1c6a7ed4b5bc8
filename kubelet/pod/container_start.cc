// How PodSyncTask starts a container that the plan names.
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
  KEELSON_RETURN_IF_ERROR(MakeDirs(dir, 0750));
  std::string path = dir + "/" + api::RandomSuffix(8);
  KEELSON_RETURN_IF_ERROR(WriteFile(path, ""));
  // Any user that the container runs as may write to it.
  if (::chmod(path.c_str(), 0666) != 0) return ErrnoError("chmod " + path);
  return path;
}

}  // namespace

bool PodSyncTask::DoBackOff(const corev1::Container& container, const ContainerRecord* last) {
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
  bool told = state_.waiting.count(container.name()) &&
              state_.waiting.at(container.name()).reason == "CrashLoopBackOff";
  if (!told) {
    Event(container.name(), "Warning", "BackOff",
          "Back-off restarting failed container " + container.name() + " in pod " + pod_->metadata().name() +
              "_" + pod_->metadata().namespace_() + "(" + pod_->metadata().uid() + ")");
  }
  SetWaiting(container.name(), "CrashLoopBackOff", "back-off " + text + " " + who);
  RequeueAfter(left);
  return true;
}

std::vector<corev1::Secret> PodSyncTask::PullSecrets() {
  std::vector<corev1::Secret> secrets;
  for (const auto& ref : pod_->spec().image_pull_secrets()) {
    auto secret = deps_.objects.GetSecret(pod_->metadata().namespace_(), ref.name());
    if (secret) {
      secrets.push_back(**secret);
    } else {
      Event("", "Warning", "FailedToRetrieveImagePullSecret",
            "Unable to retrieve some image pull secrets (" + ref.name() +
                "); attempting to pull the image may not succeed.");
    }
  }
  return secrets;
}

bool PodSyncTask::EnsureImageExists(const corev1::Container& container, const std::string& name,
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
  SetWaiting(container.name(), failure.reason, failure.message);
  CountContainerFailure(pod_->spec(), container.name(), failure.reason);
  // ImagePullBackOff is reported soon after the failed pull.
  const bool waits = failure.reason == "ImagePullBackOff";
  RequeueAfter(failure.retry.count() == 0 ? kRetry * 5
               : waits                    ? failure.retry
                                          : std::min(failure.retry, kRetry));
  return false;
}

// Image volumes: pulled like the container's own image, mounted by the runtime.
bool PodSyncTask::EnsureImageVolumesExist(const corev1::Container& container) {
  for (const auto& mount : container.volume_mounts()) {
    for (const auto& volume : pod_->spec().volumes()) {
      if (volume.name() != mount.name() || !volume.volume_source().has_image()) continue;
      CountImageVolume();
      const corev1::ImageVolumeSource& source = volume.volume_source().image();
      EnsuredImage image;
      if (!EnsureImageExists(container, source.reference(), source.pull_policy(), image)) return false;
      (*volumes_)[volume.name()] = {"", false, true, image.ref};
      state_.image_volumes[volume.name()] = image.ref;
    }
  }
  return true;
}

// A kubelet that created the container died before it started it: it never ran, and nothing has to be kept. The
// runtime may still work on it, and its name is taken. containerd 1.6 keeps a start whose caller died half way,
// with a process that waits for its command, and neither stops nor removes it. Once a start has had time to end
// by itself the process is killed here, and the next pass can remove the container.
bool PodSyncTask::RemoveUnstarted(const corev1::Container& container, const ContainerRecord& made) {
  auto removed = RemoveRun(deps_.runtime, node_.paths, made, stop_);
  if (removed) {
    state_.failed_removals.erase(made.id);
    return true;
  }
  const SteadyTime since = state_.failed_removals.try_emplace(made.id, clock_.SteadyNow()).first->second;
  const bool half_started = clock_.SteadyNow() - since >= kRetry;
  RequeueAfter(half_started && deps_.cgroups.KillContainer(*pod_, made.id) ? kKillEnds : kRetry);
  log::Debug("Cannot remove a container that never ran", {{"pod", api::KeyOf(*pod_)},
                                                          {"container", container.name()},
                                                          {"id", made.id},
                                                          {"err", removed.error()}});
  return false;
}

// A container that the runtime never removes is left behind, and the next attempt number is used. The time counts
// from the first refusal: the container's age does not say how long a busy runtime has been asked.
bool PodSyncTask::RemovalHasFailedLong(const ContainerRecord& made) const {
  auto since = state_.failed_removals.find(made.id);
  if (since == state_.failed_removals.end() || clock_.SteadyNow() - since->second < kRemoval) return false;
  log::Warn("Leaving a container that never ran", {{"pod", api::KeyOf(*pod_)}, {"id", made.id}});
  return true;
}

void PodSyncTask::StartContainer(const corev1::Container& container, const std::string& sandbox_id) {
  const ContainerRecord* last = state_.runtime->Latest(container.name());
  if (DoBackOff(container, last)) return;
  CountContainerStart(pod_->spec(), container.name());
  EnsuredImage image;
  if (!EnsureImageVolumesExist(container)) return;
  if (!EnsureImageExists(container, container.image(), container.image_pull_policy(), image)) return;
  int restarts = last ? last->restart_count + 1 : 0;
  if (!last) {  // its record may be gone; the status still has the count
    auto told = deps_.statuses.Get(pod_->metadata().uid());
    const corev1::ContainerStatus* known =
        k8s::FindContainerStatus(told ? *told : pod_->status(), container.name());
    if (known && (known->state().has_terminated() || known->last_state().has_terminated() ||
                  known->state().has_running())) {
      restarts = known->restart_count() + 1;
    }
  }
  if (last && last->state == cri::ContainerState::kCreated) {
    removed_ = true;
    if (RemoveUnstarted(container, *last)) {
      restarts = last->restart_count;
    } else if (!RemovalHasFailedLong(*last)) {
      return;
    }
  }
  bool config_error = false;
  auto id = CreateContainer(container, image, restarts, sandbox_id, config_error);
  if (!id) {
    if (stop_.stop_requested()) return;
    const char* reason = config_error ? "CreateContainerConfigError" : "CreateContainerError";
    SetWaiting(container.name(), reason, id.error().message());
    CountContainerFailure(pod_->spec(), container.name(), reason);
    Event(container.name(), "Warning", "Failed", "Error: " + id.error().message());
    RequeueAfter(kRetry);
    return;
  }
  made_.push_back(*id);
  Event(container.name(), "Normal", "Created", "Container created");
  auto started = [&] {
    ContainerStartLimiter::Slot slot(deps_.start_limiter, ContainerStartLimiter::Kind::kContainer);
    return deps_.runtime.StartContainer(*id, stop_);
  }();
  if (!started) {
    SetWaiting(container.name(), "RunContainerError", started.error().message());
    CountContainerFailure(pod_->spec(), container.name(), "RunContainerError");
    Event(container.name(), "Warning", "Failed", "Error: " + started.error().message());
    RequeueAfter(kRetry);
    return;
  }
  Event(container.name(), "Normal", "Started", "Container started");
  state_.waiting.erase(container.name());
  if (auto done = RunPostStart(container, *id); !done && !stop_.stop_requested()) {
    log::Warn("PostStartHook failed",
              {{"pod", api::KeyOf(*pod_)}, {"container", container.name()}, {"err", done.error()}});
    // A server's answer may be a secret: it does not go into events.
    Event(container.name(), "Warning", "FailedPostStartHook", "PostStartHook failed");
    SetWaiting(container.name(), "PostStartHookError", done.error().message());
    ContainerKiller killer(deps_.runtime, deps_.handlers, deps_.executor, deps_.event, node_.node_ips,
                           clock_);
    (void)killer.Kill(
        {pod_.get(), *id, container.name(), HookAddress(), "FailedPostStartHook", GraceOf(pod_->spec())},
        stop_);
    RequeueAfter(kRetry);
  }
}

Result<std::string> PodSyncTask::DebugTarget(const std::string& container) const {
  for (const auto& ephemeral : pod_->spec().ephemeral_containers()) {
    const std::string& target = ephemeral.target_container_name();
    if (ephemeral.ephemeral_container_common().name() != container || target.empty()) continue;
    const ContainerRecord* record = state_.runtime->Latest(target);
    if (!record || record->state != cri::ContainerState::kRunning) {
      return Error(Code::kUnavailable, "unable to find target container " + k8s::Quote(target));
    }
    return record->id;
  }
  return std::string();
}

Result<std::string> PodSyncTask::CreateContainer(const corev1::Container& container,
                                                 const EnsuredImage& image, int restarts,
                                                 const std::string& sandbox_id, bool& config_error) {
  KEELSON_ASSIGN_OR_RETURN(std::string message_file,
                           MakeMessageFile(node_, pod_->metadata().uid(), container.name()));
  auto id = CreateContainerWith(message_file, container, image, restarts, sandbox_id, config_error);
  if (!id) (void)RemoveFile(message_file);  // the next try has its own
  return id;
}

Result<std::string> PodSyncTask::CreateContainerWith(const std::string& message_file,
                                                     const corev1::Container& container,
                                                     const EnsuredImage& image, int restarts,
                                                     const std::string& sandbox_id, bool& config_error) {
  const std::string& uid = pod_->metadata().uid();
  std::vector<std::string> ips = state_.runtime->Ips();
  corev1::Pod pod = PodWithAddresses(*pod_, node_, ips);
  std::string hosts_file = node_.paths.EtcHosts(uid);
  auto host_file = pod_->spec().host_network() ? ReadFile("/etc/hosts") : Result<std::string>(std::string());
  const std::string hosts = EtcHosts(pod, node_, ips, host_file.value_or(""));
  // Written in place, since other containers have it mounted, and only on change: a full disk would leave it empty.
  if (auto known = ReadFile(hosts_file); !known || *known != hosts) {
    KEELSON_RETURN_IF_ERROR(WriteFile(hosts_file, hosts));
  }
  // The runtime creates the log file in this directory.
  KEELSON_RETURN_IF_ERROR(MakeDirs(sandbox_config_.log_directory + "/" + container.name()));
  SubPathFunction sub_path = [&](const std::string& volume_path, const std::string& path,
                                 const std::string& volume, const std::string& name, int index,
                                 bool read_only) {
    return deps_.volumes.SubPath(node_.paths, {uid, volume_path, path, volume, name, index, read_only});
  };
  ContainerInput input{pod,         container,
                       image.image, image.ref,
                       restarts,    *volumes_,
                       sub_path,    message_file,
                       hosts_file,  state_.runtime_handler,
                       "",          sandbox_config_.namespaces.user_ids};
  KEELSON_ASSIGN_OR_RETURN(input.target_id, DebugTarget(container.name()));
  auto config = BuildContainerConfig(input, deps_.objects, node_);
  if (config && deps_.configure_container) {
    if (auto done = deps_.configure_container(*pod_, container, *config, stop_); !done) config = done.error();
  }
  config_error = !config;
  if (!config) return config.error();
  config->annotations[kResourcesAnnotation] = ResourcesText(container.resources());
  if (pod_->spec().has_resources()) {
    config->annotations[kPodResourcesAnnotation] = ResourcesText(pod_->spec().resources());
  }
  ContainerStartLimiter::Slot slot(deps_.start_limiter, ContainerStartLimiter::Kind::kContainer);
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

// Where httpGet hooks connect to.
std::string PodSyncTask::HookAddress() const {
  const std::vector<std::string> ips = PodIps(pod_->spec(), *state_.runtime, node_.node_ips);
  return ips.empty() ? "" : ips.front();
}

}  // namespace keelson::kubelet
