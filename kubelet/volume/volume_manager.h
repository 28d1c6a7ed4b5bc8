// The volume manager: mounts the volumes of pods, and unmounts them with the pod's directory. The kernel's mounts and
// the directories are its only state, so that a restart changes nothing.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "kubelet/container/container_config.h"
#include "kubelet/volume/attached_volumes.h"
#include "kubelet/volume/expansion/expansion.h"
#include "kubelet/volume/plugin.h"
#include "kubelet/volume/pod_volumes.h"
#include "kubelet/volume/selinux/volumes.h"
#include "kubelet/volume/subpath.h"
#include "lib/base/mutex.h"

namespace keelson::kubelet {

class VolumeManager {  // thread safe; calls for one pod come one at a time
 public:
  // Also for the Node's labels.
  using NodeFunction = AttachedVolumes::NodeFunction;
  // `in_use_changed`: VolumesInUse() differs from before; called without locks, may be empty. `tell`: events about growth.
  VolumeManager(Mounter& mounter, ObjectSource& objects, std::vector<std::unique_ptr<VolumePlugin>> plugins,
                NodeFunction node = {}, std::function<void()> in_use_changed = {},
                SeLinuxSettings selinux = {}, VolumeExpander::Tell tell = {});

  // Finds the attached volumes that an earlier kubelet has set up: they are in use until their pods are removed, and must
  // not be detached meanwhile. Call before the node's status is first reported.
  void Restore(const Paths& paths);

  // Mounts or refreshes every volume that a container of the pod uses. Tries all; the first failure is returned, with
  // the message of the event FailedMount.
  Result<VolumePaths> Mount(const corev1::Pod& pod, const NodeContext& node, std::stop_token stop);
  Result<std::string> SubPath(const Paths& paths, const SubPathRequest& request) {
    return BindSubPath(mounter_, paths, request);
  }
  // Unmounts everything that the pod itself has mounted. What is mounted once for all pods stays. Tries all volumes.
  // Succeeds if there are none.
  Result<> Unmount(const Paths& paths, const std::string& uid, std::stop_token stop = {});
  // After Unmount: unstages volumes that no other pod has, and removes the pod's directory. Until then the directory tells
  // of the stages, and the volumes are in use. Succeeds if there is none. kUnavailable: another thread is at it. A pod for
  // which it has failed is LeftBehind() until it succeeds.
  Result<> RemoveUnmounted(const Paths& paths, const std::string& uid, std::stop_token stop = {});
  std::set<std::string> LeftBehind() const;  // UIDs
  // Tries again for these. The first failure is returned.
  Result<> RemoveLeftBehind(const Paths& paths, std::stop_token stop = {});
  // Both.
  Result<> Remove(const Paths& paths, const std::string& uid, std::stop_token stop = {});
  const PodVolumes& volumes() const { return volumes_; }
  // For node.status.volumesInUse: attachable volumes that pods wait for or have. Sorted.
  std::vector<std::string> VolumesInUse() const { return in_use_.Names(); }
  // UIDs of pods whose last Mount ended because a volume is not attached yet.
  std::set<std::string> WaitingForAttach() const { return in_use_.Waiting(); }
  // Whether the pod is one of these, and waits in vain: the node takes no more volumes.
  bool ExceedsAttachLimit(const std::string& uid) const { return in_use_.WaitsInVain(uid); }
  // Whether a volume of the pod has not grown yet, and a sync of the pod tries again.
  bool RetriesExpansion(const std::string& uid) const { return expander_.RetriesFor(uid); }
  // What the plugin tells of the volume at or above `path`. nullopt: the plugin leaves that to the file system.
  std::optional<Result<VolumeMetrics>> Measure(const Paths& paths, const std::string& path,
                                               std::stop_token stop);

 private:
  Result<MountedVolume> MountOne(VolumeInput input, std::stop_token stop);
  Result<MountedVolume> MountWith(VolumePlugin& plugin, VolumeInput& input, std::stop_token stop);
  Result<MountedVolume> MapWith(VolumePlugin& plugin, VolumeInput& input, std::stop_token stop);
  // Checks mount options and access modes.
  Result<> CheckUse(const VolumePlugin& plugin, const VolumeInput& input) const;
  // Sets the label that the volume is to be mounted with.
  Result<> ChooseLabel(VolumePlugin& plugin, VolumeInput& input);
  Result<> Attach(VolumePlugin& plugin, VolumeInput& input);
  Result<> StageOnce(VolumePlugin& plugin, const VolumeInput& input, std::stop_token stop);
  Result<> ExpandIfGrown(VolumePlugin& plugin, const VolumeInput& input, const std::string& path,
                         std::stop_token stop);
  using OfVolume = std::function<Result<>(const PublishedVolume& volume, const std::string& plugin_dir)>;
  // Of each volume with a directory; all of them, the first failure is returned.
  static Result<> ForEachVolume(const Paths& paths, const std::string& uid, const OfVolume& of_volume);
  Result<> TearDown(const PublishedVolume& volume, const std::string& plugin_dir, std::stop_token stop);
  Result<> Unstage(const Paths& paths, const PublishedVolume& volume, const std::string& plugin_dir,
                   std::stop_token stop);
  // Of a pod in removing_, which it leaves then.
  Result<> RunRemoval(const Paths& paths, const std::string& uid, std::stop_token stop);
  Result<> UnstageAndRemove(const Paths& paths, const std::string& uid, std::stop_token stop);
  // Whether a volume of a pod other than `uid` is mounted from the stage.
  Result<bool> StageIsNeeded(const VolumePlugin& plugin, const Paths& paths, const std::string& stage,
                             const std::string& uid) const;
  Result<> UnmountUnder(const std::string& dir);
  VolumePlugin* FindByDirectory(const std::string& plugin_dir) const;

  // Staging and unstaging of one volume exclude each other.
  class StageLock {
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

  Mounter& mounter_;
  ObjectSource& objects_;
  const std::vector<std::unique_ptr<VolumePlugin>> plugins_;
  const NodeFunction node_;
  AttachedVolumes in_use_;
  PodVolumes volumes_;
  SeLinuxVolumes selinux_;
  VolumeExpander expander_;
  mutable Mutex mutex_;
  CondVar stage_free_;
  std::set<std::string> staging_ KEELSON_GUARDED_BY(mutex_);   // stage paths at work
  std::set<std::string> removing_ KEELSON_GUARDED_BY(mutex_);  // UIDs of pods
  std::set<std::string> left_ KEELSON_GUARDED_BY(mutex_);      // UIDs of pods
};

}  // namespace keelson::kubelet
