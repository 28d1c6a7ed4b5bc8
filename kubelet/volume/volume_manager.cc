#include "kubelet/volume/volume_manager.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "lib/base/fd.h"
#include "lib/base/file.h"

namespace keelson::kubelet {

namespace {

// Opens `path` below `root`; symlinks may not lead out of it. Linux 5.6 and later.
Result<UniqueFd> OpenBeneath(int root, const std::string& path) {
  open_how how = {};
  how.flags = O_PATH | O_CLOEXEC;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
  long fd = ::syscall(SYS_openat2, root, path.c_str(), &how, sizeof(how));
  if (fd < 0) return ErrnoError("open " + path);
  return UniqueFd(static_cast<int>(fd));
}

// The same, and what is missing of the path becomes directories.
Result<UniqueFd> OpenOrMake(int root, const std::string& path) {
  auto opened = OpenBeneath(root, path);
  if (opened || opened.error().errnum() != ENOENT) return opened;
  for (size_t end = 0; end != std::string::npos;) {
    end = path.find('/', end + 1);
    std::string part = path.substr(0, end);
    if (OpenBeneath(root, part)) continue;
    size_t slash = part.rfind('/');
    UniqueFd parent;
    int at = root;
    if (slash != std::string::npos) {
      ASSIGN_OR_RETURN(parent, OpenBeneath(root, part.substr(0, slash)));
      at = parent.get();
    }
    std::string leaf = slash == std::string::npos ? part : part.substr(slash + 1);
    if (!leaf.empty() && ::mkdirat(at, leaf.c_str(), 0750) != 0 && errno != EEXIST)
      return ErrnoError("create subPath " + part);
    struct stat info = {};
    // As open to the container's user as the volume is.
    if (::fstat(root, &info) == 0 && !leaf.empty())
      (void)::fchmodat(at, leaf.c_str(), info.st_mode & 07777, 0);
  }
  return OpenBeneath(root, path);
}

}  // namespace

VolumeManager::VolumeManager(Mounter& mounter, std::vector<std::unique_ptr<VolumePlugin>> plugins)
    : mounter_(mounter), plugins_(std::move(plugins)) {}

Result<VolumePaths> VolumeManager::Mount(const corev1::Pod& pod, const NodeContext& node,
                                         std::stop_token stop) {
  VolumePaths paths;
  for (const auto& volume : pod.spec().volumes()) {
    VolumePlugin* plugin = nullptr;
    for (const auto& candidate : plugins_)
      if (candidate->Supports(volume)) plugin = candidate.get();
    if (!plugin)
      return Error(Code::kUnimplemented, "MountVolume.SetUp failed for volume \"" + volume.name() +
                                             "\" : no volume plugin matched");
    auto path = plugin->SetUp({pod, volume, node}, stop);
    if (!path) {
      Error error = path.error().Wrap("MountVolume.SetUp failed for volume \"" + volume.name() + "\" ");
      return error;
    }
    paths[volume.name()] = std::move(*path);
  }
  return paths;
}

Result<std::string> VolumeManager::SubPath(const Paths& paths, const std::string& uid,
                                           const std::string& volume_path, const std::string& sub_path,
                                           const std::string& volume, const std::string& container, int index,
                                           bool read_only) {
  ASSIGN_OR_RETURN(UniqueFd root, OpenFile(volume_path, O_PATH | O_DIRECTORY));
  auto source = OpenOrMake(root.get(), sub_path);
  if (!source)
    return source.error().Wrap("failed to prepare subPath for volumeMount \"" + volume +
                               "\" of container \"" + container + "\"");
  std::string target = paths.SubPath(uid, volume, container, index);
  ASSIGN_OR_RETURN(bool mounted, mounter_.IsMountPoint(target));
  if (mounted) RETURN_IF_ERROR(mounter_.Unmount(target, true));  // of the container's former run
  (void)::rmdir(target.c_str());
  RETURN_IF_ERROR(RemoveFile(target));
  struct stat info = {};
  if (::fstat(source->get(), &info) != 0) return ErrnoError("stat subPath " + sub_path);
  if (S_ISDIR(info.st_mode)) {
    RETURN_IF_ERROR(MakeDirs(target, 0750));
  } else {
    RETURN_IF_ERROR(MakeDirs(target.substr(0, target.rfind('/')), 0750));
    RETURN_IF_ERROR(WriteFile(target, "", 0640));
  }
  // Through the open file: nobody can exchange it for a symlink in between.
  RETURN_IF_ERROR(mounter_.Bind("/proc/self/fd/" + std::to_string(source->get()), target, read_only));
  return target;
}

Result<> VolumeManager::Remove(const Paths& paths, const std::string& uid) {
  std::string dir = paths.Pod(uid);
  ASSIGN_OR_RETURN(auto points, mounter_.MountPointsUnder(dir));
  for (const std::string& point : points) RETURN_IF_ERROR(mounter_.Unmount(point, false));
  for (const auto& plugin : plugins_) plugin->ForgetPod(uid);
  return RemoveTree(dir);
}

}  // namespace keelson::kubelet
