// Block devices that exist without this driver: logical volumes.
#pragma once

#include <string>

#include "csi/local/host/use.h"
#include "lib/base/error.h"

namespace keelson::csi::local {

// Without symlinks, as mounts name it.
Result<std::string> RealDevice(const std::string& path);
// Where the device, or the file system on it, is mounted. `device`: of RealDevice(). Nothing for one that does not exist.
Result<Use> FindDeviceUse(const std::string& device);
// Whether anybody may write to it; until the next call, or the next boot.
Result<> SetDeviceReadOnly(const std::string& device, bool read_only);

}  // namespace keelson::csi::local
