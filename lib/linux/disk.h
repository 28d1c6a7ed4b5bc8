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

// A file system with a wrong checksum is one: its device is not blank. What looks like more than one thing is
// kInvalid; a device that cannot be read is an error too, and never blank.
Result<DiskContents> ProbeDisk(const std::string& device);

}  // namespace keelson::linux
