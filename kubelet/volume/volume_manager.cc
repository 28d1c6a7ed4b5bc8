#include "kubelet/volume/volume_manager.h"

#include <algorithm>

#include "kubelet/metrics/stopwatch.h"
#include "kubelet/volume/block_devices.h"
#include "kubelet/volume/claim.h"
#include "kubelet/volume/volume_metrics.h"
#include "lib/base/file.h"
#include "lib/base/text.h"
#include "lib/k8s/pods/pod_util.h"

namespace keelson::kubelet {

namespace {

// Volumes that some container mounts or reads variables from. The others are not touched: what they name need
// not exist.
std::set<std::string> MountedNames(const corev1::PodSpec& spec) {
  std::set<std::string> names;
  auto add = [&names](const auto& container) {
    for (const auto& mount : container.volume_mounts()) names.insert(mount.name());
    for (const auto& device : container.volume_devices()) names.insert(device.name());
    for (const auto& variable : container.env()) {
      if (variable.value_from().has_file_key_ref()) {
        names.insert(variable.value_from().file_key_ref().volume_name());
      }
    }
  };
  k8s::ForEachContainer(spec, add);
  for (const auto& ephemeral : spec.ephemeral_containers()) add(ephemeral.ephemeral_container_common());
  return names;
}

Error NotSetUp(const Error& error, const char* step, const std::string& name) {
  return error.Wrap(std::string("MountVolume.") + step + " failed for volume \"" + name + "\" ");
}

// Before anything is done for the volume.
Error NotProcessed(const Error& error, const std::string& name) {
  return error.Wrap("Unable to attach or mount volumes: unmounted volumes=[" + name +
                    "], unattached volumes=[], failed to process volumes=[" + name + "]");
}

Error NotMapped(const Error& error, const char* step, const std::string& name) {
  return error.Wrap(std::string("MapVolume.") + step + " failed for volume \"" + name + "\" ");
}

}  // namespace

VolumeManager::VolumeManager(Mounter& mounter, ObjectSource& objects,
                             std::vector<std::unique_ptr<VolumePlugin>> plugins, NodeFunction node,
                             std::function<void()> in_use_changed, SeLinuxSettings selinux,
                             VolumeExpander::Tell tell)
    : mounter_(mounter),
      objects_(objects),
      plugins_(std::move(plugins)),
      node_(node),
      in_use_(std::move(node), std::move(in_use_changed)),
      selinux_(std::move(selinux)),
      expander_(objects, std::move(tell)) {}

void VolumeManager::Restore(const Paths& paths) {
  const auto uids = ListDir(paths.Pods());
  if (!uids) return;  // there are none yet
  for (const std::string& uid : *uids) {
    for (const auto& plugin : plugins_) {
      for (const bool device : {false, true}) {
        const std::string dir =
            (device ? paths.PodDevices(uid) : paths.Volumes(uid)) + "/" + Paths::Escape(plugin->name());
        const auto names = ListDir(dir);
        if (!names) continue;
        for (const std::string& name : *names) {
          const std::string attached = plugin->FindAttachName(paths, {uid, name, dir + "/" + name}, device);
          if (!attached.empty()) in_use_.Restore(attached, uid);
        }
      }
    }
  }
}

Result<VolumePaths> VolumeManager::Mount(const corev1::Pod& pod, const NodeContext& node,
                                         std::stop_token stop) {
  VolumePaths paths;
  std::optional<Error> first;
  {
    MutexLock lock(mutex_);
    if (removing_.contains(pod.metadata().uid())) {
      return Error(Code::kUnavailable, "volumes that the pod had before are being removed");
    }
    left_.erase(pod.metadata().uid());
  }
  in_use_.ClearWaiting(pod.metadata().uid());
  std::set<std::string> wanted = MountedNames(pod.spec());
  for (const auto& volume : pod.spec().volumes()) {
    // Images are the runtime's to mount.
    if (!wanted.count(volume.name()) || volume.volume_source().has_image()) continue;
    auto mounted = MountOne({pod, volume, node}, stop);
    if (mounted) {
      paths[volume.name()] = std::move(*mounted);
    } else if (!first) {
      first = mounted.error();
    }
  }
  if (first) return *first;
  return paths;
}

Result<MountedVolume> VolumeManager::MountOne(VolumeInput input, std::stop_token stop) {
  auto resolved = ResolveClaim(objects_, input);
  if (resolved) resolved = CheckMode(input);
  if (!resolved) return NotProcessed(resolved.error(), input.volume.name());
  const auto own = input.persistent && node_ ? node_() : nullptr;
  if (auto reached = CheckNode(input, own.get()); !reached) {
    return reached.error().Wrap("MountVolume.NodeAffinity check failed for volume \"" + input.name() + "\" ");
  }
  VolumePlugin* plugin = nullptr;
  for (const auto& candidate : plugins_) {
    if (candidate->Supports(input)) plugin = candidate.get();
  }
  if (!plugin) {
    // The gate is locked to off, since a repository's hooks run as root.
    constexpr char kGitRepo[] =
        "git-repo volume plugin has been disabled; if necessary, it may be re-enabled by enabling the "
        "feature-gate `GitRepoVolumeDriver`";
    const bool git_repo = !input.persistent && input.volume.volume_source().has_git_repo();
    return NotSetUp(Error(Code::kUnimplemented, git_repo ? kGitRepo : "no volume plugin matched"), "SetUp",
                    input.name());
  }
  if (auto fits = CheckUse(*plugin, input); !fits) return fits.error();
  if (!input.persistent) input.read_only = input.volume.volume_source().csi().read_only();
  const bool block = IsBlock(input);
  if (!block) KEELSON_RETURN_IF_ERROR(ChooseLabel(*plugin, input));
  Stopwatch watch;
  auto mounted = block ? MapWith(*plugin, input, stop) : MountWith(*plugin, input, stop);
  if (!mounted && mounted.error().Is(Code::kCancelled)) return mounted;
  if (volumes_.Note(plugin->name(), input, mounted ? mounted->path : "")) {
    CountStorageOperation(plugin->name(), block ? "map_volume" : "volume_mount", mounted.has_value(),
                          watch.Seconds());
  }
  return mounted;
}

Result<> VolumeManager::CheckUse(const VolumePlugin& plugin, const VolumeInput& input) const {
  if (!input.persistent) return {};
  const auto& spec = input.persistent->spec();
  if (!spec.mount_options().empty() && !plugin.TakesMountOptions()) {
    return NotSetUp(Error(Code::kInvalid, "Mount options are not supported for this volume type"),
                    "MountOptionSupport check", input.name());
  }
  // The scheduler sees to it too; pods that name their node do not pass there.
  const bool one_pod = spec.access_modes_size() == 1 && spec.access_modes(0) == "ReadWriteOncePod";
  if (one_pod && volumes_.OthersUse(*input.claim, input.pod.metadata().uid())) {
    return NotSetUp(
        Error(Code::kUnavailable,
              "volume uses the ReadWriteOncePod access mode and is already in use by another pod"),
        "SetUp", input.name());
  }
  return {};
}

Result<> VolumeManager::ChooseLabel(VolumePlugin& plugin, VolumeInput& input) {
  if (!selinux_.enabled()) return {};
  const auto takes = plugin.TakesSeLinuxLabel(input);
  // In metrics it has the name of its driver too.
  const std::string& driver =
      input.persistent ? input.source().csi().driver() : input.volume.volume_source().csi().driver();
  const SeLinuxUse use{input.pod, input.volume.name(), input.persistent.get(),
                       driver.empty() ? plugin.name() : plugin.name() + "/" + driver};
  auto label = takes ? selinux_.Admit(use, *takes) : Result<std::string>(takes.error());
  if (!label) return NotProcessed(label.error(), input.volume.name());
  input.selinux_label = std::move(*label);
  return {};
}

Result<MountedVolume> VolumeManager::MountWith(VolumePlugin& plugin, VolumeInput& input,
                                               std::stop_token stop) {
  if (auto good = plugin.Check(input); !good) {
    return NotSetUp(good.error(), "NewMounter initialization", input.name());
  }
  KEELSON_RETURN_IF_ERROR(Attach(plugin, input));
  if (auto staged = StageOnce(plugin, input, stop); !staged) {
    return NotSetUp(staged.error(), "MountDevice", input.name());
  }
  auto path = plugin.SetUp(input, stop);
  if (!path) return NotSetUp(path.error(), "SetUp", input.name());
  KEELSON_RETURN_IF_ERROR(ExpandIfGrown(plugin, input, *path, stop));
  const bool relabel = plugin.MayRelabel() && input.selinux_label.empty();
  return MountedVolume{std::move(*path), relabel, input.read_only || plugin.ReadOnly(), "", GroupOf(input)};
}

Result<MountedVolume> VolumeManager::MapWith(VolumePlugin& plugin, VolumeInput& input, std::stop_token stop) {
  KEELSON_RETURN_IF_ERROR(Attach(plugin, input));
  auto device = plugin.Device(input, stop);
  if (!device) return NotMapped(device.error(), "SetUpDevice", input.name());
  auto link = MapDevice(mounter_, input.node.paths,
                        {input.pod.metadata().uid(), plugin.name(), input.name(), std::move(*device)});
  if (!link) return NotMapped(link.error(), "MapPodDevice", input.name());
  KEELSON_RETURN_IF_ERROR(ExpandIfGrown(plugin, input, *link, stop));
  return MountedVolume{std::move(*link), false, input.read_only, "", GroupOf(input)};
}

Result<> VolumeManager::Attach(VolumePlugin& plugin, VolumeInput& input) {
  const std::string name = plugin.AttachName(input);
  if (name.empty()) {
    const std::string& uid = input.pod.metadata().uid();
    const Paths& paths = input.node.paths;
    const bool has = IsBlock(input) ? HasDeviceLink(paths, {uid, plugin.name(), input.name(), ""})
                                    : PathExists(paths.Volume(uid, plugin.name(), input.name()));
    // A volume that the pod has is in use until it is unmounted, whatever its CSIDriver says meanwhile.
    if (!has) in_use_.Release(plugin.NameInUse(input), uid);
    return {};
  }
  auto attached = in_use_.Use(name, input);
  if (!attached) in_use_.SetWaiting(input.pod.metadata().uid(), plugin.ExceedsAttachLimit(input));
  return attached;
}

Result<> VolumeManager::StageOnce(VolumePlugin& plugin, const VolumeInput& input, std::stop_token stop) {
  std::string path = plugin.StagePath(input);
  if (path.empty()) return {};
  StageLock lock(*this, path);
  // The pod's own directory says that the stage is in use, also to a kubelet that comes after this one.
  KEELSON_RETURN_IF_ERROR(
      MakeDirs(input.node.paths.Volume(input.pod.metadata().uid(), plugin.name(), input.name()), 0750));
  return plugin.Stage(input, stop);
}

Result<> VolumeManager::ExpandIfGrown(VolumePlugin& plugin, const VolumeInput& input, const std::string& path,
                                      std::stop_token stop) {
  const bool mounted = volumes_.IsMounted(input.pod.metadata().uid(), input.volume.name());
  auto expanded = expander_.Expand(plugin, input, path, mounted, std::move(stop));
  if (expanded || expanded.error().Is(Code::kCancelled)) return expanded;
  constexpr char kWhile[] = " failed while expanding volume for volume \"";
  return expanded.error().Wrap((IsBlock(input) ? "MapVolume.MarkVolumeAsMounted" : "MountVolume.Setup") +
                               std::string(kWhile) + input.name() + "\" ");
}

std::optional<Result<VolumeMetrics>> VolumeManager::Measure(const Paths& paths, const std::string& path,
                                                            std::stop_token stop) {
  // <pods>/<uid>/volumes/<plugin>/<name>
  const std::string pods = paths.Pods() + "/";
  if (path.compare(0, pods.size(), pods) != 0) return std::nullopt;
  const std::vector<std::string_view> parts = Split(std::string_view(path).substr(pods.size()), '/');
  if (parts.size() < 4 || parts[1] != "volumes") return std::nullopt;
  const std::string uid(parts[0]), plugin_dir(parts[2]), name(parts[3]);
  VolumePlugin* plugin = FindByDirectory(plugin_dir);
  if (!plugin || !plugin->Measures()) return std::nullopt;
  return plugin->Measure({uid, name, paths.Volumes(uid) + "/" + plugin_dir + "/" + name}, std::move(stop));
}

VolumePlugin* VolumeManager::FindByDirectory(const std::string& plugin_dir) const {
  for (const auto& plugin : plugins_) {
    if (Paths::Escape(plugin->name()) == plugin_dir) return plugin.get();
  }
  return nullptr;
}

std::vector<std::unique_ptr<VolumePlugin>> NewVolumePlugins(Mounter& mounter, ObjectSource& objects,
                                                            Clock& clock) {
  std::vector<std::unique_ptr<VolumePlugin>> out;
  out.push_back(NewEmptyDirPlugin(mounter));
  out.push_back(NewHostPathPlugin());
  out.push_back(NewLocalPlugin(mounter));
  out.push_back(NewNfsPlugin(mounter));
  out.push_back(NewPayloadPlugin(mounter, objects, clock));
  return out;
}

}  // namespace keelson::kubelet
