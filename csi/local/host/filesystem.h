// File systems inside of images: mkfs, fsck, growth, freezing. The programs are e2fsprogs' and xfsprogs'.
#pragma once

#include <cstdint>
#include <string>

#include "lib/base/error.h"

namespace keelson::csi::local {

// Makes a file system on a file of zeros that nothing else uses. `again`: an earlier mkfs may have left something there.
// kConflict: the program is not installed.
Result<> Format(const std::string& file, const std::string& type, bool again = false);
// What libblkid finds: "ext4", "xfs", another type, "" for nothing. kConflict: more than one thing, or partitions.
Result<std::string> FileSystemOn(const std::string& file);
// Mends ext4 on a device of `size` bytes that is not mounted, and grows it to that size. XFS mends itself at mount, and
// grows only then.
Result<> CheckAndGrow(const std::string& device, const std::string& type, int64_t size);
// Grows a mounted file system to its device's size, unless it has `size` bytes. Idempotent. For ext4 the kernel asks for
// CAP_SYS_RESOURCE.
Result<> Grow(const std::string& device, const std::string& mounted_at, const std::string& type,
              int64_t size);

// FIFREEZE: writes what is pending, and holds up writers. kConflict: it is frozen already.
Result<> Freeze(const std::string& mounted_at);
// FITHAW. Success for one that is not frozen.
Result<> Thaw(const std::string& mounted_at);

struct Usage {
  int64_t total = 0, available = 0, used = 0;  // bytes
  int64_t inodes = 0, free_inodes = 0, used_inodes = 0;
};
Result<Usage> UsageOf(const std::string& path);  // statvfs(3)

}  // namespace keelson::csi::local
