#include <sys/mount.h>

#include "kubelet/volume/plugin.h"
#include "lib/linux/mount.h"

namespace keelson::kubelet {

namespace {

class RealMounter : public Mounter {
 public:
  Result<> MountTmpfs(const std::string& target, const std::string& options) override {
    return linux::MountFilesystem("tmpfs", target, "tmpfs", 0, options);
  }
  Result<> Bind(const std::string& source, const std::string& target, bool read_only) override {
    return linux::BindMount(source, target, read_only);
  }
  Result<bool> IsMountPoint(const std::string& path) override { return linux::IsMountPoint(path); }
  Result<> Unmount(const std::string& target, bool lazy) override { return linux::Unmount(target, lazy); }
  Result<std::vector<std::string>> MountPointsUnder(const std::string& prefix) override {
    return linux::MountPointsUnder(prefix);
  }
};

}  // namespace

std::unique_ptr<Mounter> NewMounter() { return std::make_unique<RealMounter>(); }

}  // namespace keelson::kubelet
