// Mounts a device's file system: formats a blank device, and checks others. Never formats a device that holds data.
#pragma once

#include <stop_token>
#include <string>
#include <vector>

#include "kubelet/volume/mounter.h"
#include "lib/base/error.h"
#include "lib/linux/disk.h"

namespace keelson::kubelet {

struct DiskMount {
  std::string device, target;
  std::string fs_type;  // empty: ext4
  std::vector<std::string> options;
  bool read_only() const;
};

// What has to be done before a device is mounted.
struct DiskWork {
  std::vector<std::string> format;  // mkfs; empty: the device is not blank
  std::vector<std::string> check;   // fsck; empty: read-only, or another file system
  std::string doubt;                // why the mount may fail
};
// kInvalid: a blank device is to be mounted read-only, or fs_type is not a valid name.
Result<DiskWork> PlanDisk(const linux::DiskContents& found, const DiskMount& wanted);

// May be repeated after any failure or crash: it looks at the device first.
Result<> FormatAndMount(Mounter& mounter, const DiskMount& wanted, std::stop_token stop);

// Grows a mounted file system to its device's size, by its type: ext3, ext4, xfs, btrfs.
// kUnimplemented: another type.
Result<> GrowFileSystem(Disks& disks, const std::string& device, const std::string& mounted_at);

}  // namespace keelson::kubelet
