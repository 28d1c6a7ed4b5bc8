// BPF file systems, whose files keep maps and links alive without a process.
#pragma once

#include <string>

#include "lib/base/error.h"

namespace keelson::bpf {

// Makes `directory` on a BPF file system. If it is not on one, mounts one at /sys/fs/bpf when `directory`
// is below that; otherwise kInvalid.
Result<> MakePinDirectory(const std::string& directory);
// Removes the directory with all files in it. The kernel frees objects that nothing else holds. An absent
// one is fine.
Result<> RemovePinDirectory(const std::string& directory);

}  // namespace keelson::bpf
