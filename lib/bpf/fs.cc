#include "lib/bpf/fs.h"

#include <linux/magic.h>
#include <sys/vfs.h>

#include <algorithm>
#include <cerrno>

#include "lib/base/file.h"
#include "lib/linux/mount.h"

namespace keelson::bpf {
namespace {

constexpr char kUsual[] = "/sys/fs/bpf";

// Looks at `path`, or at the nearest existing directory above it.
bool IsOnBpfFs(std::string path) {
  if (!path.starts_with("/")) return false;
  struct statfs status {};
  while (::statfs(path.c_str(), &status) != 0 && errno == ENOENT && path.size() > 1) {
    path.resize(std::max<size_t>(path.rfind('/'), 1));
  }
  return status.f_type == static_cast<decltype(status.f_type)>(BPF_FS_MAGIC);
}

}  // namespace

Result<> MakePinDirectory(const std::string& directory) {
  if (!IsOnBpfFs(directory)) {
    if (!directory.starts_with(std::string(kUsual) + "/")) {
      return Error(Code::kInvalid, directory + " is not on a BPF file system");
    }
    KEELSON_RETURN_IF_ERROR(MakeDirs(kUsual));
    KEELSON_RETURN_IF_ERROR(linux::MountFilesystem("bpf", kUsual, "bpf", 0, "mode=0700"));
  }
  return MakeDirs(directory, 0700);
}

Result<> RemovePinDirectory(const std::string& directory) {
  if (!IsOnBpfFs(directory)) return {};
  return RemoveTree(directory);
}

}  // namespace keelson::bpf
