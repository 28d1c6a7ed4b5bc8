// What a directory tree holds.
#pragma once

#include <cstdint>
#include <string>

namespace keelson::kubelet {

struct DirectoryUsage {
  int64_t bytes = 0, inodes = 0;
};
// On its own file system; follows no link.
DirectoryUsage UsageOfDirectory(const std::string& path);

}  // namespace keelson::kubelet
