// Access to block devices, as an interface so that tests need none.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kubelet/volume/programs.h"
#include "lib/base/error.h"
#include "lib/linux/disk.h"

namespace keelson::kubelet {

enum class FileKind { kDirectory, kBlockDevice, kOther };

class Disks {  // thread safe
 public:
  virtual ~Disks() = default;
  // Follows symlinks. kNotFound: path "/x" does not exist.
  virtual Result<FileKind> KindOf(const std::string& path) = 0;
  virtual Result<linux::DiskContents> Probe(const std::string& device) = 0;
  // Runs mkfs, fsck and the like to their end, even while the kubelet stops: a half made file system could neither be
  // mounted nor be distinguished from one with data.
  virtual Result<ProgramEnd> Run(const std::vector<std::string>& argv) = 0;
};
std::unique_ptr<Disks> NewDisks();

}  // namespace keelson::kubelet
