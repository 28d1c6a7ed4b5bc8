#include <stdlib.h>

#include "csi/local/testing/lvm_host.h"
#include "csi/local/testing/sanity_kinds.h"

namespace keelson::csi::local {

std::vector<VolumeKind> SanityKinds() {
  const std::vector<std::string> flags{"--lvm-volume-group=group", "--lvm-thin-pool=pool"};
  const int64_t size = int64_t{64} << 20;  // the pool has 1 GiB
  const auto disk = [](const std::string& dir) -> std::shared_ptr<void> {
    return std::make_shared<LvmHost>(dir);
  };
  std::vector<VolumeKind> kinds = {
      {.name = "Logical", .block = false, .type = "lvm", .flags = flags, .size = size, .disk = disk}};
  // The fake takes its time, and knows no other devices than for file systems.
  if (::getenv("KEELSON_REAL_LVM")) {
    kinds.push_back(
        {.name = "LogicalBlock", .block = true, .type = "lvm", .flags = flags, .size = size, .disk = disk});
  }
  return kinds;
}

}  // namespace keelson::csi::local
