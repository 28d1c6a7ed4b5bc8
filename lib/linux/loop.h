// Loop devices: files as block devices (loop(4)). Linux 5.8 and later.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/error.h"
#include "lib/base/fd.h"

namespace keelson::linux {

// A loop device that has a file.
struct LoopDevice {
  std::string path;          // /dev/loop3
  uint64_t file_device = 0;  // st_dev and st_ino of the file. Btrfs shows another st_dev than stat(2)
  uint64_t file_inode = 0;
  std::string file;  // as the kernel names it; a removed one ends in " (deleted)"
  bool read_only = false, autoclear = false;
};

// All that have a file, by number. A device that loses its file meanwhile is left out.
Result<std::vector<LoopDevice>> ListLoopDevices();
// Those of the file at `path`, in whatever directory they were given it, but by this name; kNotFound without the file.
// Several are possible.
Result<std::vector<LoopDevice>> LoopDevicesOf(const std::string& path);

// The one with this number: st_dev of files on it, or st_rdev of its node. nullopt: it is another kind of device, or has no
// file.
Result<std::optional<LoopDevice>> FindLoopDevice(dev_t number);

struct LoopOptions {
  bool read_only = false;
  // The kernel detaches the file when the device is closed and unmounted everywhere, also after kill -9.
  bool autoclear = false;
};
struct AttachedLoop {
  std::string path;  // /dev/loop3
  UniqueFd fd;       // of the device: keeps a device with autoclear until somebody else uses it
};
// Gives the file a free device, with direct I/O where the file allows it.
Result<AttachedLoop> AttachLoop(const std::string& file, const LoopOptions& options);
// Tells the kernel that the file has another size.
Result<> ReloadLoopSize(const std::string& device);
// Success for a device without a file. One that is in use is detached when its last user is gone.
Result<> DetachLoop(const std::string& device);

}  // namespace keelson::linux
