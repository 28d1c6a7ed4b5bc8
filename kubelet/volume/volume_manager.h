// The volumes of pods, from their first mount to the removal of the pod's directory. Keeps no state of its
// own: what is mounted is asked from the kernel, so that a restart changes nothing.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kubelet/container/container_config.h"
#include "kubelet/volume/plugin.h"

namespace keelson::kubelet {

class VolumeManager {  // thread safe; calls for one pod come one at a time
 public:
  VolumeManager(Mounter& mounter, std::vector<std::unique_ptr<VolumePlugin>> plugins);

  // Sets up, or refreshes, every volume of the pod.
  Result<VolumePaths> Mount(const corev1::Pod& pod, const NodeContext& node, std::stop_token stop);
  // Makes `sub_path` of a mounted volume appear at a path of its own, for one mount of one container.
  Result<std::string> SubPath(const Paths& paths, const std::string& uid, const std::string& volume_path,
                              const std::string& sub_path, const std::string& volume,
                              const std::string& container, int index, bool read_only);
  // Unmounts all below the pod's directory and removes it. Absent is fine.
  Result<> Remove(const Paths& paths, const std::string& uid);

 private:
  Mounter& mounter_;
  std::vector<std::unique_ptr<VolumePlugin>> plugins_;
};

}  // namespace keelson::kubelet
