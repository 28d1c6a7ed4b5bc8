#include "kubelet/stats/fs_usage.h"

#include <sys/statvfs.h>

#include "kubelet/stats/directory_usage.h"

namespace keelson::kubelet {

FsUsage FileSystemOf(const std::string& path) {
  FsUsage out;
  struct statvfs disk = {};
  if (::statvfs(path.c_str(), &disk) != 0) return out;
  out.capacity = disk.f_blocks * disk.f_frsize;
  out.available = disk.f_bavail * disk.f_frsize;
  out.used = (disk.f_blocks - disk.f_bfree) * disk.f_frsize;
  out.inodes = disk.f_files;
  out.inodes_free = disk.f_ffree;
  out.inodes_used = disk.f_files - disk.f_ffree;
  return out;
}

FsUsage VolumeAt(const std::string& path) {
  FsUsage out = FileSystemOf(path);
  const DirectoryUsage counted = UsageOfDirectory(path);
  out.used = static_cast<uint64_t>(counted.bytes);
  out.inodes_used = static_cast<uint64_t>(counted.inodes);
  return out;
}

}  // namespace keelson::kubelet
