#include "kubelet/volume/volume_manager.h"

#include <algorithm>

#include "kubelet/metrics/stopwatch.h"
#include "kubelet/volume/block_devices.h"
#include "kubelet/volume/claim.h"
#include "kubelet/volume/volume_metrics.h"
#include "lib/api/quantity.h"
#include "lib/base/file.h"
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

Error NotMapped(const Error& error, const char* step, const std::string& name) {
  return error.Wrap(std::string("MapVolume.") + step + " failed for volume \"" + name + "\" ");
}

api::Amount Storage(const google::protobuf::Map<std::string, Quantity>& amounts) {
  auto it = amounts.find("storage");
  return it == amounts.end() ? api::Amount() : api::Amount::Of(it->second);
}

}  // namespace

class VolumeManager::StageLock {
 public:
  StageLock(VolumeManager& manager, std::string path) : manager_(manager), path_(std::move(path)) {
    MutexLock lock(manager_.mutex_);
    while (!manager_.staging_.insert(path_).second) manager_.stage_free_.wait(manager_.mutex_);
  }
  ~StageLock() {
    MutexLock lock(manager_.mutex_);
    manager_.staging_.erase(path_);
    manager_.stage_free_.notify_all();
  }

 private:
  VolumeManager& manager_;
  const std::string path_;
};

VolumeManager::VolumeManager(Mounter& mounter, ObjectSource& objects,
                             std::vector<std::unique_ptr<VolumePlugin>> plugins, NodeFunction node)
    : mounter_(mounter), objects_(objects), plugins_(std::move(plugins)), node_(std::move(node)) {}

Result<VolumePaths> VolumeManager::Mount(const corev1::Pod& pod, const NodeContext& node,
                                         std::stop_token stop) {
  VolumePaths paths;
  std::optional<Error> first;
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
  if (!resolved) {
    const std::string& name = input.volume.name();
    return resolved.error().Wrap("Unable to attach or mount volumes: unmounted volumes=[" + name +
                                 "], unattached volumes=[], failed to process volumes=[" + name + "]");
  }
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
  const bool block = IsBlock(input);
  Stopwatch watch;
  auto mounted = block ? MapWith(*plugin, input) : MountWith(*plugin, input, stop);
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
  KEELSON_RETURN_IF_ERROR(ExpandIfAsked(plugin, input, *path, stop));
  return MountedVolume{std::move(*path), plugin.MayRelabel(), input.read_only || plugin.ReadOnly(), "",
                       GroupOf(input)};
}

Result<MountedVolume> VolumeManager::MapWith(VolumePlugin& plugin, VolumeInput& input) {
  KEELSON_RETURN_IF_ERROR(Attach(plugin, input));
  auto device = plugin.Device(input);
  if (!device) return NotMapped(device.error(), "SetUpDevice", input.name());
  auto link = MapDevice(mounter_, input.node.paths,
                        {input.pod.metadata().uid(), plugin.name(), input.name(), std::move(*device)});
  if (!link) return NotMapped(link.error(), "MapPodDevice", input.name());
  return MountedVolume{std::move(*link), false, input.read_only, "", GroupOf(input)};
}

Result<> VolumeManager::Attach(VolumePlugin& plugin, VolumeInput& input) {
  std::string name = plugin.AttachName(input);
  if (name.empty()) return {};
  {
    MutexLock lock(mutex_);
    in_use_[name].insert(input.pod.metadata().uid());
  }
  auto own = node_ ? node_() : nullptr;
  if (own) {
    for (const auto& attached : own->status().volumes_attached()) {
      if (attached.name() != name) continue;
      input.device = attached.device_path();
      return {};
    }
  }
  return Error(Code::kUnavailable,
               "Volume not attached according to node status for volume \"" + input.name() + "\"");
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

Result<> VolumeManager::ExpandIfAsked(VolumePlugin& plugin, const VolumeInput& input, const std::string& path,
                                      std::stop_token stop) {
  if (!input.claim || !plugin.Expands(input)) return {};
  api::Amount asked = Storage(input.claim->spec().resources().requests());
  bool grown = Storage(input.persistent->spec().capacity()) >= asked;
  if (input.read_only || !grown || Storage(input.claim->status().capacity()) >= asked) return {};
  auto expanded = plugin.Expand(input, path, stop);
  if (!expanded) {
    return expanded.error().Wrap("MountVolume.NodeExpandVolume failed for volume \"" + input.name() + "\" ");
  }
  return objects_.MarkExpanded(*input.claim, asked.ToQuantity());
}

std::vector<std::string> VolumeManager::VolumesInUse() const {
  MutexLock lock(mutex_);
  std::vector<std::string> names;
  for (const auto& [name, pods] : in_use_) names.push_back(name);
  return names;
}

VolumePlugin* VolumeManager::FindByDirectory(const std::string& plugin_dir) const {
  for (const auto& plugin : plugins_) {
    if (Paths::Escape(plugin->name()) == plugin_dir) return plugin.get();
  }
  return nullptr;
}

Result<> VolumeManager::UnmountUnder(const std::string& dir) {
  KEELSON_ASSIGN_OR_RETURN(auto points, mounter_.MountPointsUnder(dir));
  for (const std::string& point : points) KEELSON_RETURN_IF_ERROR(mounter_.Unmount(point, false));
  return {};
}

Result<> VolumeManager::TearDown(const Paths& paths, const PublishedVolume& volume,
                                 const std::string& plugin_dir, std::stop_token stop) {
  VolumePlugin* plugin = FindByDirectory(plugin_dir);
  if (!plugin) return UnmountUnder(volume.path);
  Stopwatch watch;
  auto done = TearDownWith(*plugin, paths, volume, stop);
  CountStorageOperation(plugin->name(), "volume_unmount", done.has_value(), watch.Seconds());
  return done;
}

Result<> VolumeManager::TearDownWith(VolumePlugin& plugin, const Paths& paths, const PublishedVolume& volume,
                                     std::stop_token stop) {
  std::string stage = plugin.Reconstruct(paths, volume);
  KEELSON_RETURN_IF_ERROR(plugin.TearDown(volume, stop));
  KEELSON_RETURN_IF_ERROR(UnmountUnder(volume.path));
  if (stage.empty()) return {};
  StageLock lock(*this, stage);
  KEELSON_ASSIGN_OR_RETURN(auto pods, ListDir(paths.Pods()));
  const bool needed = std::any_of(pods.begin(), pods.end(), [&](const std::string& uid) {
    return uid != volume.uid && PathExists(paths.Volume(uid, plugin.name(), volume.name));
  });
  if (!needed) KEELSON_RETURN_IF_ERROR(plugin.Unstage(stage, stop));
  // Last: a later kubelet finds the stage by this record.
  return RemoveTree(volume.path);
}

Result<> VolumeManager::Remove(const Paths& paths, const std::string& uid, std::stop_token stop) {
  std::string dir = paths.Pod(uid);
  // Binds of parts first: they keep the volumes busy.
  KEELSON_RETURN_IF_ERROR(UnmountUnder(paths.SubPaths(uid)));
  KEELSON_RETURN_IF_ERROR(UnmapDevices(mounter_, paths, uid));
  if (auto plugin_dirs = ListDir(paths.Volumes(uid))) {
    for (const std::string& plugin_dir : *plugin_dirs) {
      std::string volumes = paths.Volumes(uid) + "/" + plugin_dir;
      KEELSON_ASSIGN_OR_RETURN(auto names, ListDir(volumes));
      for (const std::string& name : names) {
        KEELSON_RETURN_IF_ERROR(TearDown(paths, {uid, name, volumes + "/" + name}, plugin_dir, stop));
      }
    }
  }
  KEELSON_RETURN_IF_ERROR(UnmountUnder(dir));
  // Whatever is still mounted belongs to somebody: nothing below it may be removed.
  KEELSON_ASSIGN_OR_RETURN(auto left, mounter_.MountPointsUnder(dir));
  if (!left.empty()) return Error(Code::kUnavailable, left.front() + " is still mounted");
  for (const auto& plugin : plugins_) plugin->ForgetPod(uid);
  KEELSON_RETURN_IF_ERROR(RemoveTree(dir));
  volumes_.Forget(uid);
  MutexLock lock(mutex_);
  for (auto it = in_use_.begin(); it != in_use_.end();) {
    it->second.erase(uid);
    it = it->second.empty() ? in_use_.erase(it) : std::next(it);
  }
  return {};
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
