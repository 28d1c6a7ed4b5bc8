// How the volume manager takes down what pods had.
#include "kubelet/metrics/stopwatch.h"
#include "kubelet/volume/block_devices.h"
#include "kubelet/volume/volume_manager.h"
#include "kubelet/volume/volume_metrics.h"
#include "lib/base/file.h"

namespace keelson::kubelet {

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
  KEELSON_ASSIGN_OR_RETURN(const bool needed, StageIsNeeded(plugin, paths, stage, volume.uid));
  if (!needed) KEELSON_RETURN_IF_ERROR(plugin.Unstage(stage, stop));
  // Last: a later kubelet finds the stage by this record.
  return RemoveTree(volume.path);
}

Result<bool> VolumeManager::StageIsNeeded(const VolumePlugin& plugin, const Paths& paths,
                                          const std::string& stage, const std::string& uid) const {
  KEELSON_ASSIGN_OR_RETURN(const auto pods, ListDir(paths.Pods()));
  for (const std::string& other : pods) {
    const std::string dir = paths.Volumes(other) + "/" + Paths::Escape(plugin.name());
    const auto names =
        other == uid ? Result<std::vector<std::string>>(std::vector<std::string>()) : ListDir(dir);
    if (!names) continue;
    for (const std::string& name : *names) {
      if (plugin.Reconstruct(paths, {other, name, dir + "/" + name}) == stage) return true;
    }
  }
  return false;
}

Result<> VolumeManager::Remove(const Paths& paths, const std::string& uid, std::stop_token stop) {
  std::string dir = paths.Pod(uid);
  // Binds of parts first: they keep the volumes busy.
  KEELSON_RETURN_IF_ERROR(UnmountUnder(paths.SubPaths(uid)));
  KEELSON_RETURN_IF_ERROR(UnmapDevices(
      mounter_, paths, uid,
      [&](const std::string& plugin_dir, const std::string& name, const std::string& link) -> Result<> {
        VolumePlugin* plugin = FindByDirectory(plugin_dir);
        return plugin ? plugin->UnmapDevice(paths, {uid, name, link}, stop) : Result<>();
      }));
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
  selinux_.Forget(uid);
  in_use_.Forget(uid);
  return {};
}

}  // namespace keelson::kubelet
