#include <sys/stat.h>

#include "kubelet/volume/block_devices.h"
#include "kubelet/volume/plugin.h"
#include "lib/base/file.h"

namespace keelson::kubelet {

namespace {

// A directory of the node behind a claim: bind mounted, so that whoever replaces the directory later changes
// nothing for pods that run.
class LocalVolume : public VolumePlugin {
 public:
  explicit LocalVolume(Mounter& mounter) : mounter_(mounter) {}

  std::string name() const override { return "kubernetes.io/local-volume"; }
  bool Supports(const VolumeInput& input) const override {
    return input.persistent && input.source().has_local();
  }

  Result<std::string> Device(const VolumeInput& input) override {
    const std::string& device = input.source().local().path();
    RETURN_IF_ERROR(CheckBlockDevice(device));
    return device;
  }

  Result<std::string> SetUp(const VolumeInput& input, std::stop_token) override {
    const std::string& source = input.source().local().path();
    struct stat info = {};
    if (::stat(source.c_str(), &info) != 0) return ErrnoError("stat " + source);
    if (!S_ISDIR(info.st_mode))
      return Error(Code::kInvalid, "local volume " + input.name() + ": path \"" + source +
                                       "\" is not a directory: only directories can be used");
    std::string path = input.node.paths.Volume(input.pod.metadata().uid(), name(), input.name());
    ASSIGN_OR_RETURN(bool mounted, mounter_.IsMountPoint(path));
    if (mounted) return path;
    RETURN_IF_ERROR(MakeDirs(path, 0750));
    // Before the mount: a walk that is cut short is made again.
    if (!input.read_only) RETURN_IF_ERROR(SetOwnership(source, input.pod, false));
    RETURN_IF_ERROR(mounter_.Bind(source, path, input.read_only));
    return path;
  }

 private:
  Mounter& mounter_;
};

}  // namespace

std::unique_ptr<VolumePlugin> NewLocalPlugin(Mounter& mounter) {
  return std::make_unique<LocalVolume>(mounter);
}

}  // namespace keelson::kubelet
