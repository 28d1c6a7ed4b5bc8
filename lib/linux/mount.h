// mount(2) and /proc/self/mountinfo (proc(5)). Paths are absolute. Errors carry the target and errno.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lib/base/error.h"

namespace keelson::linux {

struct MountInfo {
  int id = 0;
  std::string root;         // what of the file system is mounted: "/" or a subtree
  std::string mount_point;  // as seen from this process, octal escapes undone
  std::string fs_type, source;
  std::string options, super_options;  // comma separated
  bool shared = false;                 // what is mounted below it is seen in its peers
};

// What the file at `path` lists; a line that cannot be parsed is kInternal.
Result<std::vector<MountInfo>> ListMounts(const std::string& path = "/proc/self/mountinfo");
// Mounts whose mount point is `prefix` or lies below it, deepest first: the order to unmount them in.
Result<std::vector<std::string>> MountPointsUnder(std::string_view prefix);

Result<> MountFilesystem(const std::string& source, const std::string& target, const std::string& fs_type,
                         unsigned long flags, const std::string& data);
// `source` (a file or a tree with its submounts) also appears at `target`, which must exist.
Result<> BindMount(const std::string& source, const std::string& target, bool read_only);
// Absent mounts are fine. `lazy` detaches a busy mount and lets it go when its last user does.
Result<> Unmount(const std::string& target, bool lazy = false);
// False for a path that does not exist. Linux 5.8 and later.
Result<bool> IsMountPoint(const std::string& path);

}  // namespace keelson::linux
