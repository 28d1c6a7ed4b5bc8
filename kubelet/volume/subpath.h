// Parts of volumes as mounts of containers.
#pragma once

#include <string>

#include "kubelet/container/paths.h"
#include "kubelet/volume/mounter.h"

namespace keelson::kubelet {

struct SubPathRequest {
  std::string uid, volume_path, sub_path, volume, container;
  int index = 0;  // of the mount in the container
  bool read_only = false;
};

// Makes `sub_path` of a mounted volume appear at a path of its own. What is missing of it becomes directories
// with the volume's mode. Containers may be at work in the volume: no symlink, also one that is exchanged
// meanwhile, leads out of it.
Result<std::string> BindSubPath(Mounter& mounter, const Paths& paths, const SubPathRequest& request);

}  // namespace keelson::kubelet
