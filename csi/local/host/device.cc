#include "csi/local/host/device.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <stdlib.h>
#include <sys/ioctl.h>

#include <cerrno>

#include "lib/base/fd.h"
#include "lib/base/file.h"

namespace keelson::csi::local {

namespace {

Result<bool> IsDeviceReadOnly(const std::string& device) {
  KEELSON_ASSIGN_OR_RETURN(UniqueFd fd, OpenFile(device, O_RDONLY));
  int read_only = 0;
  if (::ioctl(fd.get(), BLKROGET, &read_only) != 0) return ErrnoError("BLKROGET " + device);
  return read_only != 0;
}

}  // namespace

Result<std::string> RealDevice(const std::string& path) {
  char resolved[PATH_MAX];
  if (::realpath(path.c_str(), resolved) == nullptr) return ErrnoError("find " + path);
  return std::string(resolved);
}

Result<Use> FindDeviceUse(const std::string& device) {
  auto read_only = IsDeviceReadOnly(device);
  if (!read_only && (read_only.error().errnum() == ENOENT || read_only.error().errnum() == ENXIO)) {
    return Use{};
  }
  if (!read_only) return read_only.error();
  linux::LoopDevice one;
  one.path = device;
  one.read_only = *read_only;
  KEELSON_ASSIGN_OR_RETURN(auto mounts, linux::ListMounts());
  Use use = UseOf({one}, mounts, IsNodeOf);
  use.loops = false;
  return use;
}

Result<> SetDeviceReadOnly(const std::string& device, bool read_only) {
  KEELSON_ASSIGN_OR_RETURN(UniqueFd fd, OpenFile(device, O_RDONLY));
  const int value = read_only ? 1 : 0;
  if (::ioctl(fd.get(), BLKROSET, &value) != 0) return ErrnoError("BLKROSET " + device);
  return {};
}

}  // namespace keelson::csi::local
