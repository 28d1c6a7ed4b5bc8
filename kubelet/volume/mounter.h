// Mounts, as an interface so that tests need no root.
#pragma once

#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "kubelet/volume/disks.h"
#include "lib/base/error.h"

namespace keelson::kubelet {

class Mounter {  // thread safe
 public:
  virtual ~Mounter() = default;
  // With noswap, if the kernel supports it (6.4 and later).
  virtual Result<> MountTmpfs(const std::string& target, const std::string& options) = 0;
  virtual Result<> Bind(const std::string& source, const std::string& target, bool read_only) = 0;
  // Runs mount(8), for nfs, hugetlbfs, devices. Errors have its output.
  virtual Result<> Mount(const std::string& source, const std::string& target, const std::string& type,
                         const std::vector<std::string>& options, std::stop_token stop) = 0;
  virtual Result<bool> IsMountPoint(const std::string& path) = 0;
  virtual Result<> Unmount(const std::string& target, bool lazy) = 0;
  // For remote file systems, whose server may be away: after a timeout unmounts by force.
  virtual Result<> UnmountRemote(const std::string& target, std::stop_token stop) {
    (void)stop;
    return Unmount(target, false);
  }
  // Mount points below `prefix`. Does not touch the mounts, so it never waits for a server.
  virtual Result<std::vector<std::string>> MountPointsUnder(const std::string& prefix) = 0;  // deepest first
  // Makes `dir` a shared mount unless it is on one, for mount propagation (Bidirectional).
  virtual Result<> MakeShared(const std::string& dir) = 0;
  // The node's block devices.
  virtual Disks& disks() = 0;
};
std::unique_ptr<Mounter> NewMounter();

}  // namespace keelson::kubelet
