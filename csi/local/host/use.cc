#include "csi/local/host/use.h"

#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>

#include <algorithm>

#include "lib/base/text.h"

namespace keelson::csi::local {

namespace {

bool HasOption(const std::string& options, const std::string& option) {
  const std::vector<std::string> all = SplitList(options);
  return std::find(all.begin(), all.end(), option) != all.end();
}

std::string NameOf(const std::string& path) { return path.substr(path.rfind('/') + 1); }

}  // namespace

bool IsNodeOf(const std::string& path, const std::string& device) {
  struct stat a = {}, b = {};
  return ::stat(path.c_str(), &a) == 0 && ::stat(device.c_str(), &b) == 0 && S_ISBLK(a.st_mode) &&
         S_ISBLK(b.st_mode) && a.st_rdev == b.st_rdev;
}

const Mounted* Use::At(const std::string& path) const {
  auto it = std::find_if(mounts.rbegin(), mounts.rend(), [&](const Mounted& m) { return m.at == path; });
  return it == mounts.rend() ? nullptr : &*it;
}

bool Use::Mounts(const std::string& device) const {
  return std::any_of(mounts.begin(), mounts.end(), [&](const Mounted& m) { return m.device == device; });
}

Use UseOf(std::vector<linux::LoopDevice> devices, const std::vector<linux::MountInfo>& mounts,
          bool (*is_node)(const std::string& path, const std::string& device)) {
  Use use;
  for (const linux::MountInfo& mount : mounts) {
    for (const linux::LoopDevice& device : devices) {
      const bool filesystem = mount.source == device.path;
      // A bound device node is a mount of the file system that the node is on.
      const bool node = !filesystem && NameOf(mount.root) == NameOf(device.path) &&
                        mount.mount_point != device.path && is_node(mount.mount_point, device.path);
      if (!filesystem && !node) continue;
      use.mounts.push_back({mount.mount_point, device.path, IsReadOnly(mount), node});
    }
  }
  use.devices = std::move(devices);
  return use;
}

Result<Use> FindUse(const std::string& path) {
  auto devices = linux::LoopDevicesOf(path);
  if (!devices && devices.error().Is(Code::kNotFound)) return Use{};
  if (!devices) return devices.error();
  if (devices->empty()) return Use{};
  KEELSON_ASSIGN_OR_RETURN(auto mounts, linux::ListMounts());
  return UseOf(std::move(*devices), mounts, IsNodeOf);
}

Result<std::optional<MountedImage>> FindMounted(const std::string& image, const std::string& at) {
  const std::optional<MountedImage> none;
  KEELSON_ASSIGN_OR_RETURN(const bool mounted, linux::IsMountPoint(at));
  struct stat file = {}, place = {};
  if (!mounted || ::stat(image.c_str(), &file) != 0 || ::stat(at.c_str(), &place) != 0) return none;
  if (!S_ISDIR(place.st_mode)) return none;
  KEELSON_ASSIGN_OR_RETURN(const auto loop, linux::FindLoopDevice(place.st_dev));
  if (!loop || loop->file != image || loop->file_device != file.st_dev || loop->file_inode != file.st_ino) {
    return none;
  }
  struct statfs info = {};
  if (::statfs(at.c_str(), &info) != 0) return none;
  MountedImage out;
  out.device = loop->path;
  if (info.f_type == EXT4_SUPER_MAGIC) out.type = "ext4";
  if (info.f_type == XFS_SUPER_MAGIC) out.type = "xfs";
  out.read_only = (static_cast<unsigned long>(info.f_flags) & ST_RDONLY) != 0;
  return std::optional(std::move(out));
}

bool IsReadOnly(const linux::MountInfo& mount) { return HasOption(mount.options, "ro"); }

Result<bool> IsTaken(const std::string& path) { return linux::IsMountPoint(path); }

Result<Use> UnmountFrom(const std::function<Result<Use>()>& find, const std::string& path) {
  constexpr int kMostMounts = 32;  // one over the other; more are a mistake
  for (int i = 0; i < kMostMounts; ++i) {
    KEELSON_ASSIGN_OR_RETURN(Use use, find());
    if (!use.At(path)) return use;
    KEELSON_RETURN_IF_ERROR(linux::Unmount(path));
  }
  return Error(Code::kInternal, path + " stays mounted");
}

Result<> DetachIdle(const Use& use) {
  if (!use.loops) return {};
  for (const linux::LoopDevice& device : use.devices) {
    if (!use.Mounts(device.path)) KEELSON_RETURN_IF_ERROR(linux::DetachLoop(device.path));
  }
  return {};
}

}  // namespace keelson::csi::local
