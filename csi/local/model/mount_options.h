// Mount options of a StorageClass (mount(8)) as mount(2) takes them.
#pragma once

#include <string>
#include <vector>

#include "lib/base/error.h"

namespace keelson::csi::local {

struct MountOptions {
  unsigned long flags = 0;
  std::string data;  // the file system's own, comma separated
};

// Each option may hold several, comma separated. kInvalid: one that is mount(8)'s own business, or that would make
// another mount than the one asked for (bind, remount, loop, x-*, ...). The kernel refuses what a file system does not
// know.
Result<MountOptions> ParseMountOptions(const std::vector<std::string>& options);

}  // namespace keelson::csi::local
