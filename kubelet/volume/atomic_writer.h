// The atomic writer: readers of a volume see all of the old files or all of the new ones.
//
//   <dir>/..2026_01_02_03_04_05.123456789/a   content, one directory per version
//        /..data -> ..2026_01_02_03_04_05.123456789
//        /a -> ..data/a
//
// The names and the rename of ..data are a contract with programs that watch such volumes.
#pragma once

#include <sys/types.h>

#include <map>
#include <optional>
#include <string>

#include "lib/base/clock.h"
#include "lib/base/error.h"

namespace keelson::kubelet {

struct PayloadFile {
  std::string data;
  mode_t mode = 0644;
  std::optional<uid_t> owner;
  bool operator==(const PayloadFile&) const = default;
};
using Payload = std::map<std::string, PayloadFile>;  // by path below the volume, "a" or "dir/a"

// Makes the existing directory `dir` show exactly `payload`. `group` owns the files and may read them. True: something
// changed; false: nothing was touched. kInvalid: a path leaves the volume.
Result<bool> WritePayload(const std::string& dir, const Payload& payload, std::optional<gid_t> group,
                          Clock& clock = Clock::Real());

}  // namespace keelson::kubelet
