// Capacity and usage of a file system or a volume.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace keelson::kubelet {

struct FsUsage {
  uint64_t capacity = 0, available = 0, used = 0, inodes = 0, inodes_free = 0, inodes_used = 0;
  std::optional<bool> abnormal = std::nullopt;  // of a volume whose plugin tells its health
};

// Of the file system that holds `path`; zeros: unknown. May block on remote file systems.
FsUsage FileSystemOf(const std::string& path);
// The same, but `used` and `inodes_used` count only the tree below `path`.
FsUsage VolumeAt(const std::string& path);

}  // namespace keelson::kubelet
