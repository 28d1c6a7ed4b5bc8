// Volumes of mode Block: raw devices for containers.
//
//   <root>/pods/<uid>/volumeDevices/<plugin>/<volume>      a link to the device
//   <root>/plugins/<plugin>/volumeDevices/<volume>/<uid>   the device, bind mounted: stays what the pod was given even
//                                                          if the link's target changes
#pragma once

#include <string>

#include "kubelet/container/paths.h"
#include "kubelet/volume/mounter.h"
#include "lib/base/error.h"

namespace keelson::kubelet {

struct DeviceMapping {
  std::string uid, plugin, volume;  // uid: of the pod; volume: the directory's name
  std::string device;               // of the node
};

// Bind mounts the device and makes the link, whose path it returns. Idempotent.
Result<std::string> MapDevice(Mounter& mounter, const Paths& paths, const DeviceMapping& mapping);
// Unmaps all devices of the pod. Succeeds if there are none.
Result<> UnmapDevices(Mounter& mounter, const Paths& paths, const std::string& uid);

// kInvalid: `path` is not a block device.
Result<> CheckBlockDevice(const std::string& path);

}  // namespace keelson::kubelet
