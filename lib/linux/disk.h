// What a block device holds, by libblkid(3): low-level probing of the device itself, no cache.
#pragma once

#include <string>

#include "lib/base/error.h"

namespace keelson::linux {

struct DiskContents {
  std::string fs_type;          // ext4, xfs; also LVM2_member, crypto_LUKS, swap; empty: none
  std::string partition_table;  // dos, gpt; empty: none
  bool blank() const { return fs_type.empty() && partition_table.empty(); }
};

// Probes the device at path `device`. A file system with a wrong checksum still counts: its device is not
// blank. kInvalid: the contents look like more than one thing. A device that cannot be read is an error,
// never blank.
Result<DiskContents> ProbeDisk(const std::string& device);

}  // namespace keelson::linux
