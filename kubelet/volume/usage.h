// What a volume takes up, for statistics and eviction.
#pragma once

#include <cstdint>
#include <stop_token>
#include <string>

#include "lib/base/error.h"

namespace keelson::kubelet {

struct DiskUsage {
  uint64_t bytes = 0, inodes = 0;
};

// Walks the tree and counts what its files take on the disk, a file of several names once. Does not leave the
// file system that `path` is on. Files that vanish meanwhile are no error.
Result<DiskUsage> MeasureTree(const std::string& path, std::stop_token stop = {});

}  // namespace keelson::kubelet
