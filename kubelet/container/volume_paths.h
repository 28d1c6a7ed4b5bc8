// Where a pod's volumes are on the host.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace keelson::kubelet {

struct MountedVolume {
  std::string path;              // on the host; empty for an image
  bool selinux_relabel = false;  // the runtime may give its files the pod's label
  bool read_only = false;        // even if the mount is not
  std::string image;             // reference of an image volume; empty: `path` counts
  std::optional<int64_t> group;  // supplemental group of containers, from the persistent volume
};
using VolumePaths = std::map<std::string, MountedVolume>;  // by the volume's name in the pod

}  // namespace keelson::kubelet
