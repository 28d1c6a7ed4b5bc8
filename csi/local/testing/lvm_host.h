// For tests: the thin pool `group/pool`, 1 GiB, of the machine's LVM if KEELSON_REAL_LVM is set, else of fake_lvm.py. The
// program `lvm` in this process's PATH, and so in the driver's, is the one of that pool.
#pragma once

#include <string>
#include <vector>

#include "csi/local/host/lvm.h"
#include "lib/base/error.h"

namespace keelson::csi::local {

inline constexpr char kTestGroup[] = "group", kTestPool[] = "pool",
                      kTestTag[] = "keelson.csi.local/local.csi.keelson.dev/node1";

class LvmHost {
 public:
  // Its files are in `dir`, an existing directory of the test's.
  explicit LvmHost(std::string dir);
  ~LvmHost();  // removes group and devices
  LvmHost(const LvmHost&) = delete;
  LvmHost& operator=(const LvmHost&) = delete;

  bool real() const { return real_; }
  // Runs `lvm` with the arguments; a failure is the test's.
  void Run(std::vector<std::string> arguments) const;
  std::vector<std::string> Names() const;  // of all volumes but the pool, sorted
  void StopZeroing() const;
  // The fake's: kills the driver when this many commands have been done; 0: not any more.
  void KillDriverAfter(int commands) const;

 private:
  void MakeGroup();

  const std::string dir_;
  const bool real_;
  std::string path_, device_;  // PATH of before; the group's disk
};

}  // namespace keelson::csi::local
