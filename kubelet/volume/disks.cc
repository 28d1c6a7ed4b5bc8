#include "kubelet/volume/disks.h"

#include <sys/stat.h>

#include <cerrno>

namespace keelson::kubelet {

namespace {

class RealDisks : public Disks {
 public:
  Result<FileKind> KindOf(const std::string& path) override {
    struct stat info = {};
    if (::stat(path.c_str(), &info) == 0) {
      return S_ISDIR(info.st_mode)   ? FileKind::kDirectory
             : S_ISBLK(info.st_mode) ? FileKind::kBlockDevice
                                     : FileKind::kOther;
    }
    if (errno == ENOENT) return Error(Code::kNotFound, "path \"" + path + "\" does not exist");
    return ErrnoError("stat " + path);
  }
  Result<linux::DiskContents> Probe(const std::string& device) override { return linux::ProbeDisk(device); }
  Result<ProgramEnd> Run(const std::vector<std::string>& argv) override { return RunProgram(argv, {}); }
};

}  // namespace

std::unique_ptr<Disks> NewDisks() { return std::make_unique<RealDisks>(); }

}  // namespace keelson::kubelet
