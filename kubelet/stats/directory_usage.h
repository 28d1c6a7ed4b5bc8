// Disk usage of a directory tree.
#pragma once

#include <cstdint>
#include <string>

namespace keelson::kubelet {

struct DirectoryUsage {
  int64_t bytes = 0, inodes = 0;
};
// Counts hard links once, stays on the file system of `path`, follows no symlinks, and ignores files that vanish
// meanwhile. May take long.
DirectoryUsage UsageOfDirectory(const std::string& path);

}  // namespace keelson::kubelet
