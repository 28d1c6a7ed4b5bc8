#include "lib/linux/loop.h"

#include <fcntl.h>
#include <linux/loop.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "lib/base/file.h"
#include "lib/base/text.h"

namespace keelson::linux {

namespace {

constexpr int kAttempts = 64;  // other processes take free devices too

// `wanted`: the name of a file without its directory; devices of others are passed over, which is cheap. Empty: all.
Result<bool> Describe(const std::string& name, std::string_view wanted, LoopDevice& out) {
  auto file = ReadFile("/sys/block/" + name + "/loop/backing_file");
  if (!file) return false;
  out.path = "/dev/" + name;
  out.file = TrimRight(*file, "\n");
  if (!wanted.empty() && std::string_view(out.file).substr(out.file.rfind('/') + 1) != wanted) return false;
  auto fd = OpenFile(out.path, O_RDONLY | O_NONBLOCK);
  // Without a node here it belongs to somebody else's /dev.
  if (!fd && fd.error().Is(Code::kNotFound)) return false;
  if (!fd) return fd.error();
  loop_info64 info = {};
  if (::ioctl(fd->get(), LOOP_GET_STATUS64, &info) != 0) {
    if (errno == ENXIO) return false;
    return ErrnoError("status of " + out.path);
  }
  out.file_device = info.lo_device;
  out.file_inode = info.lo_inode;
  out.read_only = (info.lo_flags & LO_FLAGS_READ_ONLY) != 0;
  out.autoclear = (info.lo_flags & LO_FLAGS_AUTOCLEAR) != 0;
  return true;
}

int NumberOf(const std::string& path) { return std::atoi(path.c_str() + sizeof("/dev/loop") - 1); }

Result<std::vector<LoopDevice>> ListNamed(std::string_view wanted) {
  KEELSON_ASSIGN_OR_RETURN(std::vector<std::string> names, ListDir("/sys/block"));
  std::vector<LoopDevice> devices;
  for (const std::string& name : names) {
    if (name.compare(0, 4, "loop") != 0) continue;
    LoopDevice device;
    KEELSON_ASSIGN_OR_RETURN(bool attached, Describe(name, wanted, device));
    if (attached) devices.push_back(std::move(device));
  }
  std::sort(devices.begin(), devices.end(),
            [](const auto& a, const auto& b) { return NumberOf(a.path) < NumberOf(b.path); });
  return devices;
}

}  // namespace

Result<std::vector<LoopDevice>> ListLoopDevices() { return ListNamed(""); }

Result<std::vector<LoopDevice>> LoopDevicesOf(const std::string& path) {
  struct stat info = {};
  if (::stat(path.c_str(), &info) != 0) return ErrnoError("stat " + path);
  KEELSON_ASSIGN_OR_RETURN(std::vector<LoopDevice> devices,
                           ListNamed(std::string_view(path).substr(path.rfind('/') + 1)));
  std::erase_if(devices, [&](const LoopDevice& device) {
    return device.file != path && (device.file_device != info.st_dev || device.file_inode != info.st_ino);
  });
  return devices;
}

Result<std::optional<LoopDevice>> FindLoopDevice(dev_t number) {
  char link[256] = {};
  const std::string path =
      "/sys/dev/block/" + std::to_string(major(number)) + ":" + std::to_string(minor(number));
  // ../../devices/virtual/block/loop3
  const ssize_t length = ::readlink(path.c_str(), link, sizeof link - 1);
  if (length <= 0) return std::optional<LoopDevice>();
  const std::string text(link, static_cast<size_t>(length));
  LoopDevice device;
  KEELSON_ASSIGN_OR_RETURN(const bool attached, Describe(text.substr(text.rfind('/') + 1), "", device));
  return attached ? std::optional<LoopDevice>(std::move(device)) : std::nullopt;
}

Result<AttachedLoop> AttachLoop(const std::string& file, const LoopOptions& options) {
  KEELSON_ASSIGN_OR_RETURN(UniqueFd backing, OpenFile(file, options.read_only ? O_RDONLY : O_RDWR));
  KEELSON_ASSIGN_OR_RETURN(UniqueFd control, OpenFile("/dev/loop-control", O_RDWR));
  for (int i = 0; i < kAttempts; ++i) {
    const int number = ::ioctl(control.get(), LOOP_CTL_GET_FREE);
    if (number < 0) return ErrnoError("find a free loop device for " + file);
    AttachedLoop attached{"/dev/loop" + std::to_string(number), UniqueFd()};
    KEELSON_ASSIGN_OR_RETURN(attached.fd, OpenFile(attached.path, options.read_only ? O_RDONLY : O_RDWR));
    loop_config config = {};
    config.fd = static_cast<uint32_t>(backing.get());
    config.info.lo_flags =
        (options.read_only ? LO_FLAGS_READ_ONLY : 0) | (options.autoclear ? LO_FLAGS_AUTOCLEAR : 0);
    file.copy(reinterpret_cast<char*>(config.info.lo_file_name), LO_NAME_SIZE - 1);
    if (::ioctl(attached.fd.get(), LOOP_CONFIGURE, &config) == 0) {
      // Without it the file's data is in the page cache twice. Not every file system can.
      (void)::ioctl(attached.fd.get(), LOOP_SET_DIRECT_IO, 1UL);
      return attached;
    }
    if (errno != EBUSY) return ErrnoError("attach " + file + " to " + attached.path);
  }
  return Error::FromErrno(EBUSY, "attach " + file + " to a loop device");
}

Result<> ReloadLoopSize(const std::string& device) {
  KEELSON_ASSIGN_OR_RETURN(UniqueFd fd, OpenFile(device, O_RDWR));
  if (::ioctl(fd.get(), LOOP_SET_CAPACITY) != 0) return ErrnoError("reload the size of " + device);
  return {};
}

Result<> DetachLoop(const std::string& device) {
  KEELSON_ASSIGN_OR_RETURN(UniqueFd fd, OpenFile(device, O_RDONLY | O_NONBLOCK));
  if (::ioctl(fd.get(), LOOP_CLR_FD) != 0 && errno != ENXIO) return ErrnoError("detach " + device);
  return {};
}

}  // namespace keelson::linux
