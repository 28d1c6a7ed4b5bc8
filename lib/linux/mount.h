// mount(2) and /proc/self/mountinfo (proc(5)). Paths are absolute. Errors carry the target and errno.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lib/base/error.h"

namespace keelson::linux {

struct MountInfo {
  int id = 0;
  std::string root;         // the mounted part of the file system: "/" or a subtree
  std::string mount_point;  // as seen from this process, octal escapes undone
  std::string fs_type, source;
  std::string options, super_options;  // comma separated
  bool shared = false;                 // mounts below it propagate to its peers
};

// The mounts listed in the file at `path`; kInternal for a line that cannot be parsed.
Result<std::vector<MountInfo>> ListMounts(const std::string& path = "/proc/self/mountinfo");
// Mount points at or below `prefix`, deepest first: the order to unmount them in.
Result<std::vector<std::string>> MountPointsUnder(std::string_view prefix);

Result<> MountFilesystem(const std::string& source, const std::string& target, const std::string& fs_type,
                         unsigned long flags, const std::string& data);
// Makes `source` (a file or a tree with its submounts) also appear at `target`, which must exist.
Result<> BindMount(const std::string& source, const std::string& target, bool read_only);
// An absent mount is fine. `lazy` detaches a busy mount now; the kernel frees it when the last user is
// gone.
Result<> Unmount(const std::string& target, bool lazy = false);
// False for a path that does not exist. Linux 5.8 and later.
Result<bool> IsMountPoint(const std::string& path);

}  // namespace keelson::linux
