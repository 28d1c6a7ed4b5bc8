#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>

#include "kubelet/volume/block_devices.h"
#include "kubelet/volume/claim.h"
#include "kubelet/volume/format_and_mount.h"
#include "kubelet/volume/plugin.h"
#include "lib/base/file.h"
#include "lib/base/log.h"

namespace keelson::kubelet {

namespace {

// A directory of the node behind a claim, or the file system of a device, which is mounted once for all pods.
// Either is bind mounted for each of them, so that whoever replaces the directory later changes nothing for
// pods that run.
class LocalVolume : public VolumePlugin {
 public:
  explicit LocalVolume(Mounter& mounter) : mounter_(mounter) {}

  std::string name() const override { return "kubernetes.io/local-volume"; }
  bool Supports(const VolumeInput& input) const override {
    return input.persistent && input.source().has_local();
  }

  Result<> Check(const VolumeInput& input) override {
    KEELSON_ASSIGN_OR_RETURN(const bool mounted, mounter_.IsMountPoint(PodPath(input)));
    if (mounted) return {};  // whatever has become of its source
    KEELSON_ASSIGN_OR_RETURN(const FileKind kind, mounter_.disks().KindOf(input.source().local().path()));
    if (kind == FileKind::kOther) {
      return Error(Code::kInvalid, "only directory and block device are supported");
    }
    return {};
  }

  Result<std::string> Device(const VolumeInput& input, std::stop_token) override {
    const std::string& device = input.source().local().path();
    KEELSON_RETURN_IF_ERROR(CheckBlockDevice(device));
    return device;
  }

  std::string StagePath(const VolumeInput& input) const override {
    const auto kind = mounter_.disks().KindOf(input.source().local().path());
    return kind && *kind == FileKind::kBlockDevice ? DevicePath(input.node.paths, input.name()) : "";
  }
  std::string Reconstruct(const Paths& paths, const PublishedVolume& published) const override {
    return DevicePath(paths, published.name);  // of a directory: there is none, and none to unmount
  }

  Result<> Stage(const VolumeInput& input, std::stop_token stop) override {
    DiskMount disk = DiskOf(input);
    KEELSON_ASSIGN_OR_RETURN(const bool mounted, mounter_.IsMountPoint(disk.target));
    if (mounted) return LetWrite(input, std::move(disk), stop);
    KEELSON_RETURN_IF_ERROR(MakeDirs(disk.target, 0750));
    auto done = FormatAndMount(mounter_, disk, stop);
    if (done) return {};
    (void)::rmdir(disk.target.c_str());
    return Error(done.error().code(), "local: failed to mount device " + disk.device + " at " + disk.target +
                                          " (fstype: " + disk.fs_type + "), error " + done.error().message());
  }

  Result<> Unstage(const std::string& stage_path, std::stop_token) override {
    KEELSON_ASSIGN_OR_RETURN(auto points, mounter_.MountPointsUnder(stage_path));
    for (const std::string& point : points) KEELSON_RETURN_IF_ERROR(mounter_.Unmount(point, false));
    KEELSON_ASSIGN_OR_RETURN(auto left, mounter_.MountPointsUnder(stage_path));
    if (!left.empty()) return Error(Code::kUnavailable, left.front() + " is still mounted");
    // Never what is in it: that would be the volume's.
    if (::rmdir(stage_path.c_str()) != 0 && errno != ENOENT) return ErrnoError("rmdir " + stage_path);
    return {};
  }

  Result<std::string> SetUp(const VolumeInput& input, std::stop_token stop) override {
    std::string path = PodPath(input);
    KEELSON_ASSIGN_OR_RETURN(const bool mounted, mounter_.IsMountPoint(path));
    if (mounted) return path;
    const std::string device_path = StagePath(input);
    const std::string source = device_path.empty() ? input.source().local().path() : device_path;
    if (!device_path.empty()) {
      // The directory alone is the node's own disk.
      KEELSON_ASSIGN_OR_RETURN(const bool staged, mounter_.IsMountPoint(device_path));
      if (!staged) return Error(Code::kUnavailable, "nothing is mounted at " + device_path);
    }
    KEELSON_RETURN_IF_ERROR(MakeDirs(path, 0750));
    // Before the mount: a walk that is cut short is made again.
    if (!OnlyRead(input)) KEELSON_RETURN_IF_ERROR(GiveToGroup(source, input));
    if (!device_path.empty() || input.persistent->spec().mount_options().empty()) {
      KEELSON_RETURN_IF_ERROR(mounter_.Bind(source, path, input.read_only));
    } else {
      KEELSON_RETURN_IF_ERROR(mounter_.Mount(source, path, "none", Options(input, {"rbind"}), stop));
    }
    return path;
  }

  // A directory is as large as it is.
  bool Expands(const VolumeInput& input) const override { return !IsBlock(input); }
  Result<> Expand(const VolumeInput& input, const std::string&, std::stop_token) override {
    const std::string& source = input.source().local().path();
    KEELSON_ASSIGN_OR_RETURN(const FileKind kind, mounter_.disks().KindOf(source));
    if (kind != FileKind::kBlockDevice) return {};
    return GrowFileSystem(mounter_.disks(), source, DevicePath(input.node.paths, input.name()));
  }

 private:
  std::string PodPath(const VolumeInput& input) const {
    return input.node.paths.Volume(input.pod.metadata().uid(), name(), input.name());
  }
  std::string DevicePath(const Paths& paths, const std::string& volume) const {
    return paths.DeviceMount(name(), volume);
  }

  static std::vector<std::string> Options(const VolumeInput& input, std::vector<std::string> options) {
    if (input.read_only) options.push_back("ro");
    const auto& own = input.persistent->spec().mount_options();
    options.insert(options.end(), own.begin(), own.end());
    return options;
  }
  DiskMount DiskOf(const VolumeInput& input) const {
    const auto& source = input.source().local();
    return {source.path(), DevicePath(input.node.paths, input.name()),
            source.fs_type().empty() ? "ext4" : source.fs_type(), Options(input, {})};
  }
  static bool OnlyRead(const VolumeInput& input) {
    return DiskMount{"", "", "", Options(input, {})}.read_only();
  }

  // The first pod only read, and so the file system is mounted; this one is to write.
  Result<> LetWrite(const VolumeInput& input, DiskMount disk, std::stop_token stop) {
    KEELSON_ASSIGN_OR_RETURN(const bool has_it, mounter_.IsMountPoint(PodPath(input)));
    struct statvfs info = {};
    if (has_it || disk.read_only() || ::statvfs(disk.target.c_str(), &info) != 0 ||
        !(info.f_flag & ST_RDONLY)) {
      return {};
    }
    disk.options.insert(disk.options.begin(), {"remount", "rw"});
    return mounter_.Mount(disk.device, disk.target, disk.fs_type, disk.options, stop);
  }

  // Whose group the volume is is the first pod's to say, for as long as any has it.
  Result<> GiveToGroup(const std::string& source, const VolumeInput& input) {
    const auto group = FsGroup(input.pod);
    if (!group) return {};
    KEELSON_ASSIGN_OR_RETURN(auto uids, ListDir(input.node.paths.Pods()));
    for (const std::string& uid : uids) {
      KEELSON_ASSIGN_OR_RETURN(const bool has_it,
                               mounter_.IsMountPoint(input.node.paths.Volume(uid, name(), input.name())));
      if (!has_it) continue;
      struct stat info = {};
      if (::stat(source.c_str(), &info) == 0 && info.st_gid != *group) {
        log::Warn("The requested fsGroup is not the volume's. The volume may not be shareable",
                  {{"volume", input.name()},
                   {"fsGroup", std::to_string(*group)},
                   {"gid", std::to_string(info.st_gid)}});
      }
      return {};
    }
    return SetOwnership(source, input.pod, false);
  }

  Mounter& mounter_;
};

}  // namespace

std::unique_ptr<VolumePlugin> NewLocalPlugin(Mounter& mounter) {
  return std::make_unique<LocalVolume>(mounter);
}

}  // namespace keelson::kubelet
