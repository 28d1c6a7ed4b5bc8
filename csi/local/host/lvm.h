// Logical volumes in a thin pool of LVM: lvm(8), lvmthin(7). Commands run without a shell, with a limit of time, and
// outlive this process: LVM changes its metadata as a whole, and a command that is killed could leave a device suspended.
//
// Volumes are known by a tag, which lvcreate writes together with the volume. Those without it are never changed.
#pragma once

#include <string>
#include <vector>

#include "csi/local/model/lvm_report.h"
#include "lib/base/error.h"

namespace keelson::csi::local {

struct LvmOptions {
  std::string group, pool;
  std::string tag;  // of all volumes that are this driver's
};

// Thread safe. kConflict: LVM is not installed, or does not know group or pool. kTooManyRequests: no room. kTimeout.
class Lvm {
 public:
  explicit Lvm(LvmOptions options) : options_(std::move(options)) {}

  Result<ThinPool> Pool() const;
  // Own ones. Those of other groups have been made with other options, and are not listed.
  Result<std::vector<LogicalVolume>> Volumes() const;
  // kNotFound: there is none of this name. kConflict: it is not the driver's.
  Result<LogicalVolume> Volume(const std::string& name) const;

  // Each is done when it returns, on the disk too. `marks`: further tags. kConflict: the name is taken.
  Result<> Create(const std::string& name, int64_t bytes, const std::vector<std::string>& marks) const;
  // What the volume holds at one instant, its file system as after a freeze; independent of it, and writable.
  Result<> Snapshot(const LogicalVolume& from, const std::string& name,
                    const std::vector<std::string>& marks) const;
  Result<> Extend(const LogicalVolume& volume, int64_t bytes) const;  // never makes it smaller
  Result<> Remove(const LogicalVolume& volume) const;                 // kConflict: it is in use
  Result<> Activate(const LogicalVolume& volume) const;               // makes its device
  Result<> SetMark(const LogicalVolume& volume, const std::string& mark, bool on) const;

 private:
  Result<std::string> Run(const std::vector<std::string>& arguments) const;  // stdout
  std::string Path(const std::string& name) const { return options_.group + "/" + name; }

  const LvmOptions options_;
};

}  // namespace keelson::csi::local
