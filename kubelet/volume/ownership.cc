#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "kubelet/volume/plugin.h"
#include "lib/base/file.h"

namespace keelson::kubelet {

namespace {

Result<> Give(const std::string& path, const struct stat& info, gid_t group, bool read_only) {
  if (::lchown(path.c_str(), -1, group) != 0) return ErrnoError("chown " + path);
  if (S_ISLNK(info.st_mode)) return {};
  mode_t mode = (info.st_mode & 07777) | (read_only ? 0440 : 0660);
  if (S_ISDIR(info.st_mode)) mode |= S_ISGID | 0110;
  if (mode != (info.st_mode & 07777) && ::chmod(path.c_str(), mode) != 0) return ErrnoError("chmod " + path);
  return {};
}

Result<> GiveTree(const std::string& path, gid_t group, bool read_only) {
  struct stat info = {};
  if (::lstat(path.c_str(), &info) != 0) return ErrnoError("stat " + path);
  if (S_ISDIR(info.st_mode)) {
    KEELSON_ASSIGN_OR_RETURN(auto names, ListDir(path));
    for (const std::string& name : names) {
      KEELSON_RETURN_IF_ERROR(GiveTree(path + "/" + name, group, read_only));
    }
  }
  return Give(path, info, group, read_only);  // the top last: a broken walk is begun again
}

}  // namespace

std::optional<gid_t> FsGroup(const corev1::Pod& pod) {
  if (!pod.spec().security_context().has_fs_group()) return std::nullopt;
  return static_cast<gid_t>(pod.spec().security_context().fs_group());
}

Result<> SetOwnership(const std::string& path, const corev1::Pod& pod, bool read_only) {
  auto group = FsGroup(pod);
  if (!group) return {};
  if (pod.spec().security_context().fs_group_change_policy() == "OnRootMismatch") {
    struct stat info = {};
    mode_t wanted = S_ISGID | 0110 | (read_only ? 0440 : 0660);
    if (::stat(path.c_str(), &info) == 0 && info.st_gid == *group && (info.st_mode & wanted) == wanted) {
      return {};
    }
  }
  return GiveTree(path, *group, read_only);
}

}  // namespace keelson::kubelet
