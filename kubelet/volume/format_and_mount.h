// A device's own file system, mounted once for a node: made where the device is blank, checked where it is
// not. What holds anything is never formatted.
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

// What is to be done to a device before it is mounted.
struct DiskWork {
  std::vector<std::string> format;  // mkfs; empty: there is something on it
  std::vector<std::string> check;   // fsck; empty: it is not to be written to, or not what is wanted
  std::string doubt;                // why the mount may fail
};
// kInvalid: a blank device that is to be read only, or a file system that cannot have such a name.
Result<DiskWork> PlanDisk(const linux::DiskContents& found, const DiskMount& wanted);

// Any step may be the last of a kubelet: the next one looks at the device again and goes on from what is
// there.
Result<> FormatAndMount(Mounter& mounter, const DiskMount& wanted, std::stop_token stop);

// Grows a mounted file system to its device's size, where its kind can be grown so: ext3, ext4, xfs, btrfs.
Result<> GrowFileSystem(Disks& disks, const std::string& device, const std::string& mounted_at);

}  // namespace keelson::kubelet
