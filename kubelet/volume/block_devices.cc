#include "kubelet/volume/block_devices.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "lib/base/file.h"

namespace keelson::kubelet {

namespace {

std::string LinksOf(const Paths& paths, const DeviceMapping& mapping) {
  return paths.PodDevices(mapping.uid) + "/" + Paths::Escape(mapping.plugin);
}

// A link to another target, as after a change of the persistent volume, is replaced.
Result<> Link(const std::string& device, const std::string& link) {
  std::error_code failed;
  if (std::filesystem::read_symlink(link, failed) == device && !failed) return {};
  KEELSON_RETURN_IF_ERROR(RemoveFile(link));
  if (::symlink(device.c_str(), link.c_str()) != 0) return ErrnoError("symlink " + link);
  return {};
}

Result<> Unmap(Mounter& mounter, const std::string& bound) {
  KEELSON_ASSIGN_OR_RETURN(bool mounted, mounter.IsMountPoint(bound));
  if (mounted) KEELSON_RETURN_IF_ERROR(mounter.Unmount(bound, false));
  KEELSON_RETURN_IF_ERROR(RemoveFile(bound));
  // The last pod's: the volume is not mapped any more.
  const std::string volume = std::filesystem::path(bound).parent_path();
  if (::rmdir(volume.c_str()) != 0 && errno != ENOENT && errno != ENOTEMPTY) {
    return ErrnoError("rmdir " + volume);
  }
  return {};
}

Result<> ForEachDevice(const Paths& paths, const std::string& uid, const OfDevice& of_device) {
  const std::string all = paths.PodDevices(uid);
  const auto plugins = ListDir(all);
  if (!plugins) return {};
  Result<> done;
  for (const std::string& plugin : *plugins) {
    const auto volumes = ListDir(all + "/" + plugin);
    if (!volumes) {
      if (done) done = volumes.error();
      continue;
    }
    for (const std::string& volume : *volumes) {
      auto one = of_device(plugin, volume, all + "/" + plugin + "/" + volume);
      if (done) done = std::move(one);
    }
  }
  return done;
}

}  // namespace

Result<> LinkDevice(const Paths& paths, const DeviceMapping& mapping) {
  KEELSON_RETURN_IF_ERROR(MakeDirs(LinksOf(paths, mapping), 0750));
  return Link(mapping.device, LinksOf(paths, mapping) + "/" + mapping.volume);
}

bool HasDeviceLink(const Paths& paths, const DeviceMapping& mapping) {
  std::error_code failed;
  const auto status = std::filesystem::symlink_status(LinksOf(paths, mapping) + "/" + mapping.volume, failed);
  return status.type() != std::filesystem::file_type::not_found;  // also when that cannot be told
}

Result<std::string> MapDevice(Mounter& mounter, const Paths& paths, const DeviceMapping& mapping) {
  const std::string link = LinksOf(paths, mapping) + "/" + mapping.volume;
  const std::string volume = paths.VolumeDevices(mapping.plugin, mapping.volume);
  const std::string bound = volume + "/" + mapping.uid;
  // The link first: teardown finds the mount by it.
  KEELSON_RETURN_IF_ERROR(LinkDevice(paths, mapping));
  KEELSON_RETURN_IF_ERROR(MakeDirs(volume, 0750));
  KEELSON_ASSIGN_OR_RETURN(bool mounted, mounter.IsMountPoint(bound));
  if (mounted) return link;
  KEELSON_RETURN_IF_ERROR(WriteFile(bound, ""));
  KEELSON_RETURN_IF_ERROR(mounter.Bind(mapping.device, bound, false));
  return link;
}

Result<> UnmapDevices(Mounter& mounter, const Paths& paths, const std::string& uid, const OfDevice& unbound) {
  return ForEachDevice(
      paths, uid,
      [&](const std::string& plugin, const std::string& volume, const std::string& link) -> Result<> {
        KEELSON_RETURN_IF_ERROR(Unmap(mounter, paths.VolumeDevices(plugin, volume) + "/" + uid));
        return unbound ? unbound(plugin, volume, link) : Result<>();
      });
}

Result<> RemoveDeviceLinks(const Paths& paths, const std::string& uid, const OfDevice& of_device) {
  KEELSON_RETURN_IF_ERROR(ForEachDevice(
      paths, uid,
      [&](const std::string& plugin, const std::string& volume, const std::string& link) -> Result<> {
        if (of_device) KEELSON_RETURN_IF_ERROR(of_device(plugin, volume, link));
        return RemoveFile(link);
      }));
  return RemoveTree(paths.PodDevices(uid));
}

Result<> CheckBlockDevice(const std::string& path) {
  struct stat info = {};
  if (::stat(path.c_str(), &info) != 0) return ErrnoError("stat " + path);
  if (!S_ISBLK(info.st_mode)) return Error(Code::kInvalid, "path \"" + path + "\" is not a block device");
  return {};
}

}  // namespace keelson::kubelet
