// Paths at which the kubelet wants volumes. No part of such a path may be a symlink: it would let a volume appear
// elsewhere. All functions return kInvalid for one.
#pragma once

#include <string>

#include "lib/base/error.h"

namespace keelson::csi::local {

// kInvalid: not a clean absolute path to an existing directory.
Result<> CheckDirectory(const std::string& path);
// Makes an empty directory or file below an existing directory. Success if one is there already. kConflict: something
// else is there, or the directory above does not exist.
enum class TargetType { kDirectory, kFile };
Result<> MakeTarget(const std::string& path, TargetType type);
// Removes an empty directory, or a file without content. Success if nothing is there. kConflict: there is content, which
// belongs to somebody else.
Result<> RemoveTarget(const std::string& path);

// Makes `source` (a mounted directory, or a device) appear at the target, read-only from its first moment if asked for.
// Linux 5.12 and later.
Result<> Bind(const std::string& source, const std::string& target, bool read_only);

}  // namespace keelson::csi::local
