// Block devices as volumes need them, apart so that tests need none.
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
  // Of what a symlink leads to. kNotFound: path "/x" does not exist.
  virtual Result<FileKind> KindOf(const std::string& path) = 0;
  virtual Result<linux::DiskContents> Probe(const std::string& device) = 0;
  // mkfs, fsck and such, to their end, also while the kubelet stops: a file system that is half made could
  // neither be mounted nor be told from one that holds data.
  virtual Result<ProgramEnd> Run(const std::vector<std::string>& argv) = 0;
};
std::unique_ptr<Disks> NewDisks();

}  // namespace keelson::kubelet
