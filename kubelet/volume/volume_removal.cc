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

Result<> VolumeManager::ForEachVolume(const Paths& paths, const std::string& uid, const OfVolume& of_volume) {
  const auto plugin_dirs = ListDir(paths.Volumes(uid));
  if (!plugin_dirs) return {};
  Result<> done;
  for (const std::string& plugin_dir : *plugin_dirs) {
    const std::string volumes = paths.Volumes(uid) + "/" + plugin_dir;
    const auto names = ListDir(volumes);
    if (!names) {
      if (done) done = names.error();
      continue;
    }
    for (const std::string& name : *names) {
      auto one = of_volume({uid, name, volumes + "/" + name}, plugin_dir);
      if (done) done = std::move(one);
    }
  }
  return done;
}

Result<> VolumeManager::TearDown(const PublishedVolume& volume, const std::string& plugin_dir,
                                 std::stop_token stop) {
  VolumePlugin* plugin = FindByDirectory(plugin_dir);
  if (!plugin) return UnmountUnder(volume.path);
  Stopwatch watch;
  auto done = plugin->TearDown(volume, std::move(stop));
  if (done) done = UnmountUnder(volume.path);
  CountStorageOperation(plugin->name(), "volume_unmount", done.has_value(), watch.Seconds());
  return done;
}

Result<> VolumeManager::Unstage(const Paths& paths, const PublishedVolume& volume,
                                const std::string& plugin_dir, std::stop_token stop) {
  VolumePlugin* plugin = FindByDirectory(plugin_dir);
  const std::string stage = plugin ? plugin->Reconstruct(paths, volume) : "";
  if (stage.empty()) return {};
  StageLock lock(*this, stage);
  KEELSON_ASSIGN_OR_RETURN(const bool needed, StageIsNeeded(*plugin, paths, stage, volume.uid));
  if (!needed) {
    Stopwatch watch;
    auto done = plugin->Unstage(stage, std::move(stop));
    CountStorageOperation(plugin->name(), "unmount_device", done.has_value(), watch.Seconds());
    if (!done) return done;
  }
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

Result<> VolumeManager::Unmount(const Paths& paths, const std::string& uid, std::stop_token stop) {
  // Binds of parts first: they keep the volumes busy.
  KEELSON_RETURN_IF_ERROR(UnmountUnder(paths.SubPaths(uid)));
  auto unmapped = UnmapDevices(
      mounter_, paths, uid,
      [&](const std::string& plugin_dir, const std::string& name, const std::string& link) -> Result<> {
        VolumePlugin* plugin = FindByDirectory(plugin_dir);
        return plugin ? plugin->UnmapDevice(paths, {uid, name, link}, stop) : Result<>();
      });
  auto torn_down =
      ForEachVolume(paths, uid, [&](const PublishedVolume& volume, const std::string& plugin_dir) {
        return TearDown(volume, plugin_dir, stop);
      });
  KEELSON_RETURN_IF_ERROR(unmapped);
  KEELSON_RETURN_IF_ERROR(torn_down);
  KEELSON_RETURN_IF_ERROR(UnmountUnder(paths.Pod(uid)));
  volumes_.Forget(uid);
  selinux_.Forget(uid);
  expander_.Forget(uid);
  in_use_.ClearWaiting(uid);
  return {};
}

Result<> VolumeManager::RemoveUnmounted(const Paths& paths, const std::string& uid, std::stop_token stop) {
  {
    MutexLock lock(mutex_);
    if (!removing_.insert(uid).second) {
      return Error(Code::kUnavailable, "what the pod has left is being removed");
    }
  }
  return RunRemoval(paths, uid, std::move(stop));
}

Result<> VolumeManager::RemoveLeftBehind(const Paths& paths, std::stop_token stop) {
  Result<> done;
  for (const std::string& uid : LeftBehind()) {
    {
      MutexLock lock(mutex_);
      // A static pod may have begun again meanwhile, and has volumes.
      if (!left_.contains(uid) || !removing_.insert(uid).second) continue;
    }
    auto removed = RunRemoval(paths, uid, stop);
    if (done) done = std::move(removed);
  }
  return done;
}

Result<> VolumeManager::RunRemoval(const Paths& paths, const std::string& uid, std::stop_token stop) {
  auto removed = UnstageAndRemove(paths, uid, std::move(stop));
  MutexLock lock(mutex_);
  removing_.erase(uid);
  if (removed) {
    left_.erase(uid);
  } else {
    left_.insert(uid);
  }
  return removed;
}

std::set<std::string> VolumeManager::LeftBehind() const {
  MutexLock lock(mutex_);
  return left_;
}

Result<> VolumeManager::UnstageAndRemove(const Paths& paths, const std::string& uid, std::stop_token stop) {
  auto released = RemoveDeviceLinks(
      paths, uid,
      [&](const std::string& plugin_dir, const std::string& name, const std::string& link) -> Result<> {
        VolumePlugin* plugin = FindByDirectory(plugin_dir);
        return plugin ? plugin->ReleaseDevice(paths, {uid, name, link}, stop) : Result<>();
      });
  auto unstaged =
      ForEachVolume(paths, uid, [&](const PublishedVolume& volume, const std::string& plugin_dir) {
        return Unstage(paths, volume, plugin_dir, stop);
      });
  KEELSON_RETURN_IF_ERROR(released);
  KEELSON_RETURN_IF_ERROR(unstaged);
  // Whatever is still mounted belongs to somebody: nothing below it may be removed.
  KEELSON_ASSIGN_OR_RETURN(const auto left, mounter_.MountPointsUnder(paths.Pod(uid)));
  if (!left.empty()) return Error(Code::kUnavailable, left.front() + " is still mounted");
  for (const auto& plugin : plugins_) plugin->ForgetPod(uid);
  KEELSON_RETURN_IF_ERROR(RemoveTree(paths.Pod(uid)));
  in_use_.Forget(uid);
  return {};
}

Result<> VolumeManager::Remove(const Paths& paths, const std::string& uid, std::stop_token stop) {
  KEELSON_RETURN_IF_ERROR(Unmount(paths, uid, stop));
  return RemoveUnmounted(paths, uid, stop);
}

}  // namespace keelson::kubelet
