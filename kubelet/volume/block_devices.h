// Volumes of mode Block: raw devices for containers.
//
//   <root>/pods/<uid>/volumeDevices/<plugin>/<volume>      a link to the device
//   <root>/plugins/<plugin>/volumeDevices/<volume>/<uid>   the device, bind mounted: stays what the pod was given even
//                                                          if the link's target changes
#pragma once

#include <functional>
#include <string>

#include "kubelet/container/paths.h"
#include "kubelet/volume/mounter.h"
#include "lib/base/error.h"

namespace keelson::kubelet {

struct DeviceMapping {
  std::string uid, plugin, volume;  // uid: of the pod; volume: the directory's name
  std::string device;               // of the node
};

// Makes the link alone: the record that the pod uses the volume. Idempotent.
Result<> LinkDevice(const Paths& paths, const DeviceMapping& mapping);
bool HasDeviceLink(const Paths& paths, const DeviceMapping& mapping);
// Bind mounts the device and makes the link, whose path it returns. Idempotent.
Result<std::string> MapDevice(Mounter& mounter, const Paths& paths, const DeviceMapping& mapping);
using OfDevice = std::function<Result<>(const std::string& plugin_dir, const std::string& volume,
                                        const std::string& link)>;
// Ends the bind mounts of the pod's devices, and calls `unbound` after each. The links stay. Both functions try all devices,
// return the first failure, may be called again, and succeed if there are none.
Result<> UnmapDevices(Mounter& mounter, const Paths& paths, const std::string& uid,
                      const OfDevice& unbound = {});
// Removes the pod's links, each after `of_device` has succeeded for it.
Result<> RemoveDeviceLinks(const Paths& paths, const std::string& uid, const OfDevice& of_device = {});

// kInvalid: `path` is not a block device.
Result<> CheckBlockDevice(const std::string& path);

}  // namespace keelson::kubelet
