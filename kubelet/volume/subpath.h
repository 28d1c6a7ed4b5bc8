// subPath mounts of volumes.
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

// Bind mounts `sub_path` of a volume to a separate path, which it returns. Creates missing directories with the
// volume's mode. Containers may change the volume meanwhile: no symlink leads out of it, even if swapped in a race.
Result<std::string> BindSubPath(Mounter& mounter, const Paths& paths, const SubPathRequest& request);

}  // namespace keelson::kubelet
