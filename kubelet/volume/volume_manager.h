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
#include "kubelet/volume/plugin.h"
#include "kubelet/volume/pod_volumes.h"
#include "kubelet/volume/subpath.h"
#include "lib/base/mutex.h"

namespace keelson::kubelet {

class VolumeManager {  // thread safe; calls for one pod come one at a time
 public:
  // The Node object, for its labels and attached volumes; null: unknown.
  using NodeFunction = std::function<std::shared_ptr<const corev1::Node>()>;
  VolumeManager(Mounter& mounter, ObjectSource& objects, std::vector<std::unique_ptr<VolumePlugin>> plugins,
                NodeFunction node = {});

  // Mounts or refreshes every volume that a container of the pod uses. Tries all; the first failure is returned, with
  // the message of the event FailedMount.
  Result<VolumePaths> Mount(const corev1::Pod& pod, const NodeContext& node, std::stop_token stop);
  Result<std::string> SubPath(const Paths& paths, const SubPathRequest& request) {
    return BindSubPath(mounter_, paths, request);
  }
  // Unmounts everything below the pod's directory and removes it. Succeeds if there is none.
  Result<> Remove(const Paths& paths, const std::string& uid, std::stop_token stop = {});
  const PodVolumes& volumes() const { return volumes_; }
  // For node.status.volumesInUse: attachable volumes that pods wait for or have. Sorted.
  std::vector<std::string> VolumesInUse() const;

 private:
  Result<MountedVolume> MountOne(VolumeInput input, std::stop_token stop);
  Result<MountedVolume> MountWith(VolumePlugin& plugin, VolumeInput& input, std::stop_token stop);
  Result<MountedVolume> MapWith(VolumePlugin& plugin, VolumeInput& input);
  // Checks mount options and access modes.
  Result<> CheckUse(const VolumePlugin& plugin, const VolumeInput& input) const;
  Result<> Attach(VolumePlugin& plugin, VolumeInput& input);
  Result<> StageOnce(VolumePlugin& plugin, const VolumeInput& input, std::stop_token stop);
  Result<> ExpandIfAsked(VolumePlugin& plugin, const VolumeInput& input, const std::string& path,
                         std::stop_token stop);
  Result<> TearDown(const Paths& paths, const PublishedVolume& volume, const std::string& plugin_dir,
                    std::stop_token stop);
  Result<> TearDownWith(VolumePlugin& plugin, const Paths& paths, const PublishedVolume& volume,
                        std::stop_token stop);
  Result<> UnmountUnder(const std::string& dir);
  VolumePlugin* FindByDirectory(const std::string& plugin_dir) const;

  // Staging and unstaging of one volume exclude each other.
  class StageLock;

  Mounter& mounter_;
  ObjectSource& objects_;
  const std::vector<std::unique_ptr<VolumePlugin>> plugins_;
  const NodeFunction node_;
  PodVolumes volumes_;
  mutable Mutex mutex_;
  CondVar stage_free_;
  std::set<std::string> staging_ KEELSON_GUARDED_BY(mutex_);                        // stage paths at work
  std::map<std::string, std::set<std::string>> in_use_ KEELSON_GUARDED_BY(mutex_);  // attach name -> pods
};

}  // namespace keelson::kubelet
