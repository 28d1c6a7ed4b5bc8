// Volumes of mode Block: devices that containers get as they are.
//
//   <root>/pods/<uid>/volumeDevices/<plugin>/<volume>      a link to the device
//   <root>/plugins/<plugin>/volumeDevices/<volume>/<uid>   the device, bind mounted: whatever comes to be at
//   the
//                                                          link's end, this is what the pod was given
#pragma once

#include <string>

#include "kubelet/container/paths.h"
#include "kubelet/volume/mounter.h"
#include "lib/base/error.h"

namespace keelson::kubelet {

struct DeviceMapping {
  std::string uid, plugin, volume;  // of the pod; as the volume's directory is called
  std::string device;               // of the node
};

// Idempotent; the link's path.
Result<std::string> MapDevice(Mounter& mounter, const Paths& paths, const DeviceMapping& mapping);
// All of the pod's. Absent is fine.
Result<> UnmapDevices(Mounter& mounter, const Paths& paths, const std::string& uid);

// kInvalid when `path` is no block device.
Result<> CheckBlockDevice(const std::string& path);

}  // namespace keelson::kubelet
