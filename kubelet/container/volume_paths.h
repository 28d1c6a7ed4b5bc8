// Where a pod's volumes are on the host.
#pragma once

#include <map>
#include <string>

namespace keelson::kubelet {

struct MountedVolume {
  std::string path;              // on the host; empty for an image
  bool selinux_relabel = false;  // the runtime may give its files the pod's label
  bool read_only = false;        // whatever the mount says
  std::string image;             // reference of an image in place of a path
};
using VolumePaths = std::map<std::string, MountedVolume>;  // by the volume's name in the pod

}  // namespace keelson::kubelet
