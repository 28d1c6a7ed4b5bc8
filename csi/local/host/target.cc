#include "csi/local/host/target.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "csi/local/model/path.h"
#include "lib/base/fd.h"
#include "lib/base/file.h"
#include "lib/linux/beneath.h"

namespace keelson::csi::local {

namespace {

Result<UniqueFd> Open(const std::string& path, int flags) {
  if (!IsCleanAbsolutePath(path) || path == "/") {
    return Error(Code::kInvalid, "\"" + path + "\" is not an absolute path without \".\" and \"..\"");
  }
  KEELSON_ASSIGN_OR_RETURN(UniqueFd root, OpenFile("/", O_PATH | O_DIRECTORY));
  auto fd = linux::OpenWithoutLinks(root.get(), path.substr(1), flags | O_CLOEXEC);
  if (!fd && fd.error().errnum() == ELOOP) {
    return Error(Code::kInvalid, "a part of " + path + " is a symlink");
  }
  return fd;
}

struct Place {
  UniqueFd directory;
  std::string name;
};

Result<Place> Find(const std::string& path) {
  if (!IsCleanAbsolutePath(path) || path.rfind('/') == 0) {
    return Error(Code::kInvalid, "\"" + path + "\" is not an absolute path below a directory");
  }
  const size_t slash = path.rfind('/');
  KEELSON_ASSIGN_OR_RETURN(UniqueFd directory, Open(path.substr(0, slash), O_PATH | O_DIRECTORY));
  return Place{std::move(directory), path.substr(slash + 1)};
}

Error Foreign(const std::string& path, const std::string& what) {
  return Error(Code::kConflict, path + " is " + what);
}

}  // namespace

Result<> CheckDirectory(const std::string& path) {
  auto fd = Open(path, O_PATH | O_DIRECTORY);
  if (fd) return {};
  if (fd.error().errnum() == ENOENT || fd.error().errnum() == ENOTDIR) {
    return Error(Code::kInvalid, path + " is not a directory");
  }
  return fd.error();
}

Result<> MakeTarget(const std::string& path, TargetType type) {
  auto place = Find(path);
  if (!place && place.error().errnum() == ENOENT) {
    return Error(Code::kConflict, "the directory above " + path + " does not exist");
  }
  if (!place) return place.error();
  const int directory = place->directory.get();
  if (type == TargetType::kDirectory) {
    if (::mkdirat(directory, place->name.c_str(), 0750) == 0) return {};
  } else {
    UniqueFd fd(
        ::openat(directory, place->name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (fd) return {};
  }
  if (errno != EEXIST) return ErrnoError("make " + path);
  struct stat info = {};
  if (::fstatat(directory, place->name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) {
    return ErrnoError("stat " + path);
  }
  if (S_ISLNK(info.st_mode)) return Error(Code::kInvalid, path + " is a symlink");
  if (type == TargetType::kDirectory && !S_ISDIR(info.st_mode)) return Foreign(path, "not a directory");
  if (type == TargetType::kFile && !S_ISREG(info.st_mode)) return Foreign(path, "not a regular file");
  return {};
}

Result<> RemoveTarget(const std::string& path) {
  auto place = Find(path);
  if (!place && place.error().errnum() == ENOENT) return {};
  if (!place) return place.error();
  const int directory = place->directory.get();
  struct stat info = {};
  if (::fstatat(directory, place->name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) {
    if (errno == ENOENT) return {};
    return ErrnoError("stat " + path);
  }
  if (S_ISLNK(info.st_mode)) return Error(Code::kInvalid, path + " is a symlink");
  if (S_ISREG(info.st_mode) && info.st_size > 0) return Foreign(path, "a file with content");
  if (!S_ISDIR(info.st_mode) && !S_ISREG(info.st_mode)) {
    return Foreign(path, "neither a directory nor a file");
  }
  if (::unlinkat(directory, place->name.c_str(), S_ISDIR(info.st_mode) ? AT_REMOVEDIR : 0) == 0) return {};
  if (errno == ENOENT) return {};
  if (errno == ENOTEMPTY) return Foreign(path, "a directory with content");
  return ErrnoError("remove " + path);
}

Result<> Bind(const std::string& source, const std::string& target, bool read_only) {
  KEELSON_ASSIGN_OR_RETURN(UniqueFd at, Open(target, O_PATH));
  UniqueFd tree(::open_tree(AT_FDCWD, source.c_str(), OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC));
  if (!tree) return ErrnoError("clone the mount of " + source);
  struct mount_attr attributes = {};
  attributes.attr_set = MOUNT_ATTR_RDONLY;
  if (read_only && ::mount_setattr(tree.get(), "", AT_EMPTY_PATH, &attributes, sizeof(attributes)) != 0) {
    return ErrnoError("make the mount of " + source + " read-only");
  }
  if (::move_mount(tree.get(), "", at.get(), "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) != 0) {
    return ErrnoError("mount " + source + " at " + target);
  }
  return {};
}

}  // namespace keelson::csi::local
