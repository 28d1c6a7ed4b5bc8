#include "lib/linux/mount.h"

#include <fcntl.h>
#include <linux/stat.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sstream>

#include "lib/base/file.h"

namespace keelson::linux {

namespace {

constexpr unsigned kAttrMountRoot = 0x2000;  // STATX_ATTR_MOUNT_ROOT, where libc headers lack it

// proc(5): space, tab, newline and backslash appear as \ooo.
std::string Unescape(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 3 < text.size()) {
      out.push_back(
          static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + (text[i + 3] - '0')));
      i += 3;
    } else {
      out.push_back(text[i]);
    }
  }
  return out;
}

bool ParseLine(const std::string& line, MountInfo& out) {
  std::istringstream in(line);
  std::string parent, device, field;
  if (!(in >> out.id >> parent >> device >> out.root >> out.mount_point >> out.options)) return false;
  while (in >> field && field != "-") out.shared = out.shared || field.compare(0, 7, "shared:") == 0;
  if (field != "-" || !(in >> out.fs_type >> out.source >> out.super_options)) return false;
  out.root = Unescape(out.root);
  out.mount_point = Unescape(out.mount_point);
  out.source = Unescape(out.source);
  return true;
}

// Sets the read-only flag and keeps the mount's other flags (noexec, nosuid, nodev). A kernel before 5.12
// only has a call that clears them.
bool SetReadOnly(const std::string& target) {
  struct mount_attr attributes = {};
  attributes.attr_set = MOUNT_ATTR_RDONLY;
  if (::mount_setattr(AT_FDCWD, target.c_str(), AT_SYMLINK_NOFOLLOW, &attributes, sizeof(attributes)) == 0) {
    return true;
  }
  return errno == ENOSYS &&
         ::mount(nullptr, target.c_str(), nullptr, MS_BIND | MS_REMOUNT | MS_RDONLY, nullptr) == 0;
}

}  // namespace

Result<std::vector<MountInfo>> ListMounts(const std::string& path) {
  KEELSON_ASSIGN_OR_RETURN(std::string text, ReadFile(path));
  std::vector<MountInfo> mounts;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    MountInfo info;
    if (!ParseLine(line, info)) return Error(Code::kInternal, path + ": cannot parse \"" + line + "\"");
    mounts.push_back(std::move(info));
  }
  return mounts;
}

Result<std::vector<std::string>> MountPointsUnder(std::string_view prefix) {
  KEELSON_ASSIGN_OR_RETURN(auto mounts, ListMounts());
  std::vector<std::string> points;
  for (const MountInfo& mount : mounts) {
    std::string_view point = mount.mount_point;
    if (point.substr(0, prefix.size()) != prefix) continue;
    if (point.size() > prefix.size() && point[prefix.size()] != '/') continue;
    points.emplace_back(point);
  }
  std::reverse(points.begin(), points.end());  // listed in the order they were mounted
  return points;
}

Result<> MountFilesystem(const std::string& source, const std::string& target, const std::string& fs_type,
                         unsigned long flags, const std::string& data) {
  if (::mount(source.c_str(), target.c_str(), fs_type.c_str(), flags, data.c_str()) != 0) {
    return ErrnoError("mount " + fs_type + " at " + target);
  }
  return {};
}

Result<> BindMount(const std::string& source, const std::string& target, bool read_only) {
  if (::mount(source.c_str(), target.c_str(), nullptr, MS_BIND | MS_REC, nullptr) != 0) {
    return ErrnoError("bind mount " + source + " at " + target);
  }
  // The kernel takes the read-only flag of a bind mount only in a second step.
  if (read_only && !SetReadOnly(target)) {
    Error error = ErrnoError("remount read-only " + target);
    ::umount2(target.c_str(), MNT_DETACH);
    return error;
  }
  return {};
}

Result<> Unmount(const std::string& target, bool lazy) {
  if (::umount2(target.c_str(), UMOUNT_NOFOLLOW | (lazy ? MNT_DETACH : 0)) != 0) {
    if (errno == EINVAL || errno == ENOENT) return {};
    return ErrnoError("unmount " + target);
  }
  return {};
}

Result<bool> IsMountPoint(const std::string& path) {
  struct statx info = {};
  if (::statx(AT_FDCWD, path.c_str(), AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, 0, &info) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) return false;
    return ErrnoError("statx " + path);
  }
  return (info.stx_attributes & kAttrMountRoot) != 0;
}

}  // namespace keelson::linux
