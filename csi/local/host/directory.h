// Directories that hold the content of volumes and snapshots: trees of files on the data directory's own file system.
#pragma once

#include <stop_token>
#include <string>

#include "csi/local/host/use.h"
#include "lib/base/error.h"

namespace keelson::csi::local {

// A new, empty directory, as mkfs leaves the root of a file system: root's, 0755. kAlreadyExists: there is one.
Result<> MakeDirectory(const std::string& path);
// Copies what is in `from` to the empty directory `to`, and the owner and mode of `from` itself: cp(1) with -a, which
// shares blocks where the file system can. kTooManyRequests: no room, or the quota of `to` is too small. kCancelled: `stop`
// was asked for. All of it is on the disk on return.
Result<> CopyDirectory(const std::string& from, const std::string& to, const std::stop_token& stop);
// A tree, or a file. Also absent, it is gone for good.
Result<> RemoveDirectoryForGood(const std::string& path);

// Where the directory is mounted (bound) beside its own place; nothing for one that does not exist.
Result<Use> FindDirectoryUse(const std::string& path);

}  // namespace keelson::csi::local
