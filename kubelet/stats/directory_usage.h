// What a directory tree takes on its disk.
#pragma once

#include <cstdint>
#include <string>

namespace keelson::kubelet {

struct DirectoryUsage {
  int64_t bytes = 0, inodes = 0;
};
// A file of several names counts once. Stays on the file system that `path` is on; follows no link. Files
// that vanish meanwhile do not count.
DirectoryUsage UsageOfDirectory(const std::string& path);

}  // namespace keelson::kubelet
