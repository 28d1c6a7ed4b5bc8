#include "csi/local/host/directory.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "csi/local/host/image.h"
#include "csi/local/host/run.h"
#include "lib/base/fd.h"
#include "lib/base/file.h"

namespace keelson::csi::local {

namespace {

bool Contains(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

Result<> WriteOut(const std::string& directory) {
  KEELSON_ASSIGN_OR_RETURN(UniqueFd fd, OpenFile(directory, O_RDONLY | O_DIRECTORY));
  if (::syncfs(fd.get()) != 0) return ErrnoError("syncfs " + directory);
  return {};
}

// The part of its file system that a mount of this directory has as its root (proc_pid_mountinfo(5)).
Result<std::string> RootOf(const std::string& path, const linux::MountInfo& mount) {
  const std::string point = mount.mount_point == "/" ? "" : mount.mount_point;
  const std::string root = mount.root == "/" ? "" : mount.root;
  if (path.compare(0, point.size() + 1, point + "/") != 0) {
    return Error(Code::kInternal, path + " is not below its mount " + mount.mount_point);
  }
  return root + path.substr(point.size());
}

}  // namespace

Result<> MakeDirectory(const std::string& path) {
  if (::mkdir(path.c_str(), 0755) != 0) return ErrnoError("make " + path);
  if (::chmod(path.c_str(), 0755) != 0) return ErrnoError("chmod " + path);
  return {};
}

Result<> CopyDirectory(const std::string& from, const std::string& to, const std::stop_token& stop) {
  const std::vector<std::string> argv = {"cp",        "-a", "--reflink=auto", "--one-file-system", "--",
                                         from + "/.", to};
  KEELSON_ASSIGN_OR_RETURN(Ended ended, RunProgram(argv, stop));
  if (ended.status.ok()) return WriteOut(to);
  if (Contains(ended.output, "No space left on device") || Contains(ended.output, "Disk quota exceeded")) {
    return Error(Code::kTooManyRequests, "not enough space for a copy of " + from);
  }
  return ProgramError(argv, ended);
}

Result<> RemoveDirectoryForGood(const std::string& path) {
  KEELSON_RETURN_IF_ERROR(RemoveTree(path));
  return RemoveForGood(path);
}

Result<Use> FindDirectoryUse(const std::string& path) {
  char resolved[PATH_MAX];
  struct statx info = {};
  if (::realpath(path.c_str(), resolved) == nullptr ||
      ::statx(AT_FDCWD, resolved, 0, STATX_MNT_ID, &info) != 0) {
    if (errno == ENOENT) return Use{};
    return ErrnoError("find " + path);
  }
  KEELSON_ASSIGN_OR_RETURN(auto mounts, linux::ListMounts());
  auto own = std::find_if(mounts.begin(), mounts.end(), [&](const linux::MountInfo& mount) {
    return static_cast<uint64_t>(mount.id) == info.stx_mnt_id;
  });
  if (own == mounts.end()) return Error(Code::kInternal, "the mount of " + path + " is not listed");
  KEELSON_ASSIGN_OR_RETURN(const std::string root, RootOf(resolved, *own));
  Use use;
  for (const linux::MountInfo& mount : mounts) {
    if (mount.root != root || mount.source != own->source || mount.fs_type != own->fs_type) continue;
    use.mounts.push_back({mount.mount_point, "", IsReadOnly(mount), false});
  }
  return use;
}

}  // namespace keelson::csi::local
