// Mounts as volumes need them, apart so that tests need no root.
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
  // Never swapped out where the kernel can promise that (6.4 and later).
  virtual Result<> MountTmpfs(const std::string& target, const std::string& options) = 0;
  virtual Result<> Bind(const std::string& source, const std::string& target, bool read_only) = 0;
  // What mount(8) and its helpers know: nfs, hugetlbfs, devices. Errors carry what the helper said.
  virtual Result<> Mount(const std::string& source, const std::string& target, const std::string& type,
                         const std::vector<std::string>& options, std::stop_token stop) = 0;
  virtual Result<bool> IsMountPoint(const std::string& path) = 0;
  virtual Result<> Unmount(const std::string& target, bool lazy) = 0;
  // Of what is on a server that may be away: given up after a while, and then done by force.
  virtual Result<> UnmountRemote(const std::string& target, std::stop_token stop) {
    (void)stop;
    return Unmount(target, false);
  }
  // Looks at nothing that is mounted: never waits for a server.
  virtual Result<std::vector<std::string>> MountPointsUnder(const std::string& prefix) = 0;  // deepest first
  // What is mounted below the directory is seen in containers that ask for it (Bidirectional): makes it a
  // shared mount unless it lies on one.
  virtual Result<> MakeShared(const std::string& dir) = 0;
  // What there may be to mount.
  virtual Disks& disks() = 0;
};
std::unique_ptr<Mounter> NewMounter();

}  // namespace keelson::kubelet
