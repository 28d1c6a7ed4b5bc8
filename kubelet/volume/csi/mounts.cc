#include "kubelet/volume/csi/mounts.h"

#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "lib/base/file.h"
#include "lib/base/log.h"

namespace keelson::kubelet::csi {

namespace {

constexpr char kTarget[] = "/mount";
const std::string kUndo = "-";  // before a path: the undoing operation

std::string VolumeDir(const VolumeInput& input) {
  return input.node.paths.Volume(input.pod.metadata().uid(), kPluginName, input.name());
}

Error Ours(const Error& error, const std::string& what) {
  return Error(error.code(), "kubernetes.io/csi: " + what + ": " + error.message());
}

}  // namespace

bool Mounts::IsDone(const std::string& path) const {
  MutexLock lock(mutex_);
  return done_.count(path) > 0;
}

void Mounts::SetDone(const std::string& path, bool done) {
  MutexLock lock(mutex_);
  if (done) {
    done_.insert(path);
  } else {
    done_.erase(path);
  }
}

void Mounts::ForgetPod(const std::string& uid) {
  MutexLock lock(mutex_);
  std::erase_if(done_, [dir = "/pods/" + uid + "/"](const std::string& path) {
    return path.find(dir) != std::string::npos;
  });
}

Result<> Mounts::RemoveMountDir(const std::string& path) {
  KEELSON_ASSIGN_OR_RETURN(const bool mounted, mounter_.IsMountPoint(path));
  if (mounted || ::rmdir(path.c_str()) == 0 || errno == ENOENT) return {};
  return ErrnoError("failed to remove dir [" + path + "]");
}

Result<VolumeInput> Mounts::WithLabel(const VolumeInput& given) const {
  VolumeInput input = given;
  KEELSON_ASSIGN_OR_RETURN(const auto own, ReadVolumeData(VolumeDir(input)));
  if (own) input.selinux_label = own->selinux_label;
  if (own || !input.persistent) return input;
  const VolumeSource source = SourceOf(input);
  const std::string staging = StagingPath(input.node.paths, source.driver, source.handle);
  KEELSON_ASSIGN_OR_RETURN(const auto staged, ReadVolumeData(std::filesystem::path(staging).parent_path()));
  if (!staged || staged->selinux_label == input.selinux_label) return input;
  return Error(Code::kUnavailable, "the volume is mounted with the SELinux label \"" + staged->selinux_label +
                                       "\", the pod needs \"" + input.selinux_label + "\"");
}

Result<> Mounts::Stage(const VolumeInput& given, std::stop_token stop) {
  KEELSON_ASSIGN_OR_RETURN(const VolumeInput input, WithLabel(given));
  const VolumeSource source = SourceOf(input);
  const std::string staging = StagingPath(input.node.paths, source.driver, source.handle);
  if (IsDone(staging)) {
    // This pod's record of the stage.
    return WriteVolumeData(VolumeDir(input), DataOf(input, source));
  }
  auto client = drivers_.Client(source.driver);
  if (!client) return Ours(client.error(), "attacher.MountDevice failed to create newCsiDriverClient");
  if (auto held = backoff_.Held(staging)) return *held;
  auto staged = backoff_.Note(staging, StageNow(input, source, **client, staging, std::move(stop)));
  if (staged) {
    SetDone(staging, true);
    backoff_.Forget(kUndo + staging);
  }
  return staged;
}

Result<> Mounts::StageNow(const VolumeInput& input, const VolumeSource& source, NodeClient& client,
                          const std::string& staging, std::stop_token stop) {
  KEELSON_ASSIGN_OR_RETURN(const NodeCapabilities capabilities, client.GetCapabilities(stop));
  KEELSON_ASSIGN_OR_RETURN(const auto driver, objects_.Driver(source.driver));
  StageRequest request{source.handle, staging, {}, source.attributes, {}, {}};
  KEELSON_ASSIGN_OR_RETURN(request.publish_context,
                           objects_.PublishContext(driver.get(), source, input.node.node_name));
  if (capabilities.stage) {
    KEELSON_ASSIGN_OR_RETURN(request.secrets, objects_.Secret(source.stage_secret, "NodeStageSecretRef"));
  }
  request.capability = MountCapability(source, capabilities, input.pod);
  // The pod's record says that it needs the stage, the stage's own how to undo it.
  const VolumeData data = DataOf(input, source);
  const std::string dir = std::filesystem::path(staging).parent_path();
  KEELSON_RETURN_IF_ERROR(WriteVolumeData(VolumeDir(input), data));
  KEELSON_ASSIGN_OR_RETURN(const auto before, ReadVolumeData(dir));
  KEELSON_RETURN_IF_ERROR(WriteVolumeData(dir, data, true));
  KEELSON_RETURN_IF_ERROR(MakeDirs(staging, 0750));
  if (!capabilities.stage) return {};
  auto staged = client.Stage(request, std::move(stop));
  // What an earlier kubelet may have staged stays on record.
  if (!staged && IsFinal(staged.error()) && !before) {
    auto removed = RemoveMountDir(staging);
    if (removed) removed = RemoveVolumeData(dir);
    if (!removed) log::Error("Cannot clean up after NodeStageVolume", {{"err", removed.error()}});
  }
  return staged;
}

Result<std::string> Mounts::Publish(const VolumeInput& given, std::stop_token stop) {
  KEELSON_ASSIGN_OR_RETURN(const VolumeInput input, WithLabel(given));
  const VolumeSource source = SourceOf(input);
  const std::string target = VolumeDir(input) + kTarget;
  const bool again = IsDone(target);
  if (again) {
    const auto driver = objects_.Driver(source.driver);
    if (!driver || !RequiresRepublish(driver->get())) return target;
  }
  auto client = drivers_.Client(source.driver);
  Result<> done;
  if (!client) {
    done = Ours(client.error(), "mounter.SetUpAt failed to get CSI client");
  } else if (auto held = backoff_.Held(target)) {
    done = *held;
  } else {
    SetDone(kUndo + target, false);
    done = backoff_.Note(target, PublishNow(input, source, **client, target, again, std::move(stop)));
  }
  if (done) {
    SetDone(target, true);
    return target;
  }
  if (!again) return done.error();
  log::Warn("A CSI driver cannot publish a volume again",
            {{"volume", input.name()}, {"driver", source.driver}, {"err", done.error()}});
  return target;
}

Result<PublishRequest> Mounts::PlanPublish(const VolumeInput& input, const VolumeSource& source,
                                           const CsiDriver* driver, const NodeCapabilities& capabilities) {
  PublishRequest request;
  request.volume_id = source.handle;
  request.read_only = source.read_only;
  if (capabilities.stage && !source.ephemeral) {
    request.staging_path = StagingPath(input.node.paths, source.driver, source.handle);
  }
  auto context = objects_.PublishContext(driver, source, input.node.node_name);
  if (!context) return Ours(context.error(), "mounter.SetUpAt failed to fetch publishContext");
  request.publish_context = std::move(*context);
  KEELSON_ASSIGN_OR_RETURN(request.secrets, objects_.Secret(source.publish_secret, "NodePublishSecretRef"));
  request.volume_context = source.attributes;
  for (auto& [key, value] : PodInfo(driver, source, input.pod)) request.volume_context[key] = value;
  auto tokens = objects_.Tokens(driver, input.pod);
  if (!tokens) {
    return Ours(tokens.error(), "mounter.SetUpAt failed to get service accoount token attributes");
  }
  if (*tokens) {
    const bool secret = driver->spec().service_account_token_in_secrets();
    (secret ? request.secrets : request.volume_context)[kTokensKey] = **tokens;
  }
  request.capability = MountCapability(source, capabilities, input.pod);
  return request;
}

Result<> Mounts::PublishNow(const VolumeInput& input, const VolumeSource& source, NodeClient& client,
                            const std::string& target, bool again, std::stop_token stop) {
  auto driver = objects_.Driver(source.driver);
  auto fits = driver ? CheckLifecycleMode(driver->get(), source) : Result<>(driver.error());
  if (!fits) return Ours(fits.error(), "mounter.SetupAt failed to check volume lifecycle mode");
  auto applies = AppliesFsGroup(driver->get(), source, input.pod);
  if (!applies) return Ours(applies.error(), "mounter.SetupAt failed to check fsGroup policy");
  auto capabilities = client.GetCapabilities(stop);
  if (!capabilities) {
    return Ours(capabilities.error(), "mounter.SetUpAt failed to check for STAGE_UNSTAGE_VOLUME capability");
  }
  KEELSON_ASSIGN_OR_RETURN(PublishRequest request, PlanPublish(input, source, driver->get(), *capabilities));
  request.target_path = target;
  // The driver makes the target itself.
  KEELSON_RETURN_IF_ERROR(WriteVolumeData(VolumeDir(input), DataOf(input, source)));
  if (auto published = client.Publish(request, std::move(stop)); !published) {
    if (IsFinal(published.error()) && !again) {
      if (auto removed = RemoveMountDir(target); !removed) {
        log::Error("Cannot clean up after NodePublishVolume", {{"err", removed.error()}});
      }
    }
    return published;
  }
  if (capabilities->mount_group || !*applies) return {};
  auto owned = SetOwnership(target, input.pod, false);
  return owned ? owned : owned.error().Wrap("applyFSGroup failed for vol " + source.handle);
}

Result<> Mounts::Unpublish(const std::string& dir, std::stop_token stop) {
  const std::string target = dir + kTarget;
  auto data = ReadVolumeData(dir);
  if (!data) return Ours(data.error(), "unmounter failed to load volume data file [" + target + "]");
  if (!*data || IsDone(kUndo + target)) return {};
  auto client = drivers_.Client((*data)->driver);
  if (!client) return Ours(client.error(), "Unmounter.TearDownAt failed to get CSI client");
  if (auto held = backoff_.Held(kUndo + target)) return *held;
  SetDone(target, false);
  backoff_.Forget(target);
  auto unpublished =
      backoff_.Note(kUndo + target, (*client)->Unpublish((*data)->handle, target, std::move(stop)));
  if (!unpublished) return Ours(unpublished.error(), "Unmounter.TearDownAt failed");
  // Some drivers leave it.
  auto removed = RemoveMountDir(target);
  if (!removed) {
    return Ours(removed.error(), "Unmounter.TearDownAt failed to clean mount dir [" + target + "]");
  }
  SetDone(kUndo + target, true);
  return {};
}

Result<> Mounts::Unstage(const std::string& staging_path, std::stop_token stop) {
  const std::string dir = std::filesystem::path(staging_path).parent_path();
  KEELSON_ASSIGN_OR_RETURN(const auto data, ReadVolumeData(dir));
  if (data) {
    auto client = drivers_.Client(data->driver);
    if (!client) return Ours(client.error(), "attacher.UnmountDevice failed to create newCsiDriverClient");
    if (auto held = backoff_.Held(kUndo + staging_path)) return *held;
    SetDone(staging_path, false);
    backoff_.Forget(staging_path);
    auto unstage = [&]() -> Result<> {
      KEELSON_ASSIGN_OR_RETURN(const NodeCapabilities capabilities, (*client)->GetCapabilities(stop));
      return capabilities.stage ? (*client)->Unstage(data->handle, staging_path, stop) : Result<>();
    };
    auto unstaged = backoff_.Note(kUndo + staging_path, unstage());
    if (!unstaged) return Ours(unstaged.error(), "attacher.UnmountDevice failed");
  }
  auto removed = RemoveMountDir(staging_path);
  if (removed) removed = RemoveVolumeData(dir);
  return removed ? removed : Ours(removed.error(), "failed to clean up global mount " + dir);
}

}  // namespace keelson::kubelet::csi
