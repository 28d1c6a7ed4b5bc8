#include "kubelet/volume/mounter.h"

#include <sys/mount.h>

#include <algorithm>
#include <cerrno>

#include "lib/base/log.h"
#include "lib/base/text.h"
#include "lib/linux/mount.h"

namespace keelson::kubelet {

namespace {

// A helper that hangs (an NFS server that is away) is given up: the pod's next sync tries again.
constexpr std::chrono::minutes kMountPatience(2), kUnmountPatience(1);

// `failed` and `details` are of the error, which has the program's words too.
Result<> RunHelper(const std::vector<std::string>& argv, const std::string& failed,
                   const std::string& details, std::chrono::minutes patience, std::stop_token stop) {
  KEELSON_ASSIGN_OR_RETURN(const ProgramEnd end, RunProgram(argv, std::move(stop), patience));
  if (end.ok()) return {};
  return Error(end.status ? Code::kUnavailable : end.status.error().code(),
               failed + ": " + end.Why() + "\n" + details + "\nOutput: " + end.output);
}

class RealMounter : public Mounter {
 public:
  Result<> MountTmpfs(const std::string& target, const std::string& options) override {
    std::string no_swap = options.empty() ? "noswap" : options + ",noswap";
    auto mounted = linux::MountFilesystem("tmpfs", target, "tmpfs", 0, no_swap);
    if (mounted || mounted.error().errnum() != EINVAL) return mounted;
    return linux::MountFilesystem("tmpfs", target, "tmpfs", 0, options);
  }

  Result<> Bind(const std::string& source, const std::string& target, bool read_only) override {
    return linux::BindMount(source, target, read_only);
  }

  Result<> Mount(const std::string& source, const std::string& target, const std::string& type,
                 const std::vector<std::string>& options, std::stop_token stop) override {
    std::vector<std::string> argv = {"mount", "-t", type};
    if (!options.empty()) argv.insert(argv.end(), {"-o", Join(options, ",")});
    argv.insert(argv.end(), {source, target});
    return RunHelper(argv, "mount failed",
                     "Mounting command: mount\nMounting arguments: " +
                         Join(std::vector<std::string>(argv.begin() + 1, argv.end()), " "),
                     kMountPatience, std::move(stop));
  }

  Result<> UnmountRemote(const std::string& target, std::stop_token stop) override {
    auto run = [&](const std::vector<std::string>& argv) {
      return RunHelper(argv, "unmount failed", "Unmounting arguments: " + target, kUnmountPatience, stop);
    };
    auto done = run({"umount", target});
    if (done || !done.error().Is(Code::kTimeout)) return done;
    log::Warn("Timed out waiting for unmount, trying with -f", {{"path", target}});
    return run({"umount", "-f", target});
  }

  Result<bool> IsMountPoint(const std::string& path) override { return linux::IsMountPoint(path); }
  Result<> Unmount(const std::string& target, bool lazy) override { return linux::Unmount(target, lazy); }
  Result<std::vector<std::string>> MountPointsUnder(const std::string& prefix) override {
    return linux::MountPointsUnder(prefix);
  }

  Result<> MakeShared(const std::string& dir) override {
    KEELSON_ASSIGN_OR_RETURN(auto mounts, linux::ListMounts());
    const linux::MountInfo* over = nullptr;  // the mount that the directory is on: the deepest, the latest
    for (const auto& mount : mounts) {
      const std::string& point = mount.mount_point;
      bool above = point == "/" || dir == point || dir.compare(0, point.size() + 1, point + "/") == 0;
      if (above && (!over || point.size() >= over->mount_point.size())) over = &mount;
    }
    if (over && over->shared) return {};
    if (!over || over->mount_point != dir) KEELSON_RETURN_IF_ERROR(linux::BindMount(dir, dir, false));
    if (::mount(nullptr, dir.c_str(), nullptr, MS_SHARED | MS_REC, nullptr) != 0) {
      return ErrnoError("make mount shared: " + dir);
    }
    return {};
  }
  Disks& disks() override { return *disks_; }

 private:
  const std::unique_ptr<Disks> disks_ = NewDisks();
};

}  // namespace

std::unique_ptr<Mounter> NewMounter() { return std::make_unique<RealMounter>(); }

}  // namespace keelson::kubelet
