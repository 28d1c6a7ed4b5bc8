// What a file system or a volume has, and what is in use of it.
#pragma once

#include <cstdint>
#include <string>

namespace keelson::kubelet {

struct FsUsage {
  uint64_t capacity = 0, available = 0, used = 0, inodes = 0, inodes_free = 0, inodes_used = 0;
};

// Of the file system that holds `path`; zeros when it cannot be told.
FsUsage FileSystemOf(const std::string& path);
// The same, where only the tree below `path` counts as in use.
FsUsage VolumeAt(const std::string& path);

}  // namespace keelson::kubelet
