#include "kubelet/volume/subpath.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "lib/base/fd.h"
#include "lib/base/file.h"
#include "lib/base/log.h"
#include "lib/linux/beneath.h"

namespace keelson::kubelet {

namespace {

using linux::OpenBeneath;

// One directory more, as open to the container's user as the volume is whatever the umask.
Result<> MakeLeaf(int root, int at, const std::string& leaf, const std::string& path) {
  struct stat info = {};
  if (::fstat(root, &info) != 0) return ErrnoError("stat the volume");
  if (::mkdirat(at, leaf.c_str(), 0700) != 0) {
    return errno == EEXIST ? Result<>() : ErrnoError("create subPath " + path);
  }
  int fd = ::openat(at, leaf.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return ErrnoError("open subPath " + path);
  UniqueFd made(fd);
  if (::fchmod(made.get(), info.st_mode & 07777) != 0) return ErrnoError("chmod subPath " + path);
  return {};
}

// OpenBeneath, and what is missing of the path becomes directories.
Result<UniqueFd> OpenOrMake(int root, const std::string& path) {
  auto opened = OpenBeneath(root, path);
  if (opened || opened.error().errnum() != ENOENT) return opened;
  for (size_t end = 0; end != std::string::npos;) {
    end = path.find('/', end + 1);
    std::string part = path.substr(0, end);
    if (OpenBeneath(root, part)) continue;
    size_t slash = part.rfind('/');
    std::string leaf = slash == std::string::npos ? part : part.substr(slash + 1);
    if (leaf.empty()) continue;
    UniqueFd parent;
    int at = root;
    if (slash != std::string::npos) {
      KEELSON_ASSIGN_OR_RETURN(parent, OpenBeneath(root, part.substr(0, slash)));
      at = parent.get();
    }
    KEELSON_RETURN_IF_ERROR(MakeLeaf(root, at, leaf, part));
  }
  return OpenBeneath(root, path);
}

// An empty directory or file, of the kind that `source` is.
Result<> MakeTarget(int source, const std::string& target) {
  struct stat info = {};
  if (::fstat(source, &info) != 0) return ErrnoError("stat subPath");
  if (S_ISDIR(info.st_mode)) return MakeDirs(target, 0750);
  KEELSON_RETURN_IF_ERROR(MakeDirs(target.substr(0, target.rfind('/')), 0750));
  return WriteFile(target, "", 0640);
}

}  // namespace

Result<std::string> BindSubPath(Mounter& mounter, const Paths& paths, const SubPathRequest& request) {
  KEELSON_ASSIGN_OR_RETURN(UniqueFd root, OpenFile(request.volume_path, O_PATH | O_DIRECTORY));
  auto source = OpenOrMake(root.get(), request.sub_path);
  if (!source) {
    const std::string what = "failed to prepare subPath for volumeMount \"" + request.volume +
                             "\" of container \"" + request.container + "\"";
    const bool outside = source.error().errnum() == EXDEV;
    log::Warn(what, {{"path", request.volume_path + "/" + request.sub_path},
                     {"err", outside ? "not within the volume" : source.error().message()}});
    // Without the reason: the pod's status would show the symlink's author what exists on the host.
    return Error(outside ? Code::kInvalid : source.error().code(), what);
  }
  std::string target = paths.SubPath(request.uid, request.volume, request.container, request.index);
  KEELSON_ASSIGN_OR_RETURN(bool mounted, mounter.IsMountPoint(target));
  if (mounted) KEELSON_RETURN_IF_ERROR(mounter.Unmount(target, true));  // of the container's former run
  (void)::rmdir(target.c_str());
  KEELSON_RETURN_IF_ERROR(RemoveFile(target));
  KEELSON_RETURN_IF_ERROR(MakeTarget(source->get(), target));
  // Through the open file, which a container cannot replace by a symlink meanwhile.
  KEELSON_RETURN_IF_ERROR(
      mounter.Bind("/proc/self/fd/" + std::to_string(source->get()), target, request.read_only));
  return target;
}

}  // namespace keelson::kubelet
