// What the kernel knows of an image: the loop devices that it is attached to, and where these are mounted. The driver
// asks each time rather than remember: so a restart or a reboot changes nothing.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/error.h"
#include "lib/linux/loop.h"
#include "lib/linux/mount.h"

namespace keelson::csi::local {

struct Mounted {
  std::string at;      // mount point
  std::string device;  // /dev/loop3
  bool read_only = false;
  bool node = false;  // the device itself is bound there, not the file system on it
};

struct Use {
  std::vector<linux::LoopDevice> devices;
  std::vector<Mounted> mounts;  // in the order of mounting
  bool loops = true;            // else `devices` is a device that is not this driver's to detach

  const Mounted* At(const std::string& path) const;  // the topmost; null: none of this image
  bool Mounts(const std::string& device) const;
};

// Of the image at `path`; nothing for one that does not exist.
Result<Use> FindUse(const std::string& path);
// The file system of the image that is topmost at `at`, found without a look at all devices and mounts of the machine: a
// kubelet that starts anew asks for all of its volumes again. nullopt: there is none, or FindUse() has to tell.
struct MountedImage {
  std::string device, type;  // /dev/loop3; ext4, xfs, empty for others
  bool read_only = false;    // mount or file system
};
Result<std::optional<MountedImage>> FindMounted(const std::string& image, const std::string& at);
// Whether `path` is a node of the device.
bool IsNodeOf(const std::string& path, const std::string& device);
// For a caller with the lists at hand.
Use UseOf(std::vector<linux::LoopDevice> devices, const std::vector<linux::MountInfo>& mounts,
          bool (*is_node)(const std::string& path, const std::string& device));
bool IsReadOnly(const linux::MountInfo& mount);
// Whether something, of whatever image, is mounted at `path` (and not only visible there).
Result<bool> IsTaken(const std::string& path);

// Unmounts what `find` finds from `path`, however often it is mounted there. Success if it is not. Returns what is left.
Result<Use> UnmountFrom(const std::function<Result<Use>()>& find, const std::string& path);
// Detaches loop devices without mounts.
Result<> DetachIdle(const Use& use);

}  // namespace keelson::csi::local
