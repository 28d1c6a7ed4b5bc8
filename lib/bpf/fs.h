// BPF file systems, whose files keep maps and links alive without a process.
#pragma once

#include <string>

#include "lib/base/error.h"

namespace keelson::bpf {

// Makes `directory` on a BPF file system; where there is none, one is mounted at /sys/fs/bpf, if that is
// above `directory`. kInvalid when `directory` is elsewhere.
Result<> MakePinDirectory(const std::string& directory);
// Removes files and directories; what nobody else holds goes from the kernel. Absent is fine.
Result<> RemovePinDirectory(const std::string& directory);

}  // namespace keelson::bpf
