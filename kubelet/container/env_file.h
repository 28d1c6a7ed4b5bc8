// Files with variables that one container writes for later ones (env[].valueFrom.fileKeyRef).
//
//   # a comment
//   GREETING='anything but a single quote,
//   also over several lines'
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "lib/base/error.h"

namespace keelson::kubelet {

// The value of `key` in the text; nullopt: none. kInvalid, with the line: not in the format above.
Result<std::optional<std::string>> FindInEnvFile(std::string_view text, std::string_view key);

// The same for a file in a volume, which a container may have written: follows no symlink out of the volume, and
// rejects files larger than 64 KiB.
Result<std::optional<std::string>> ReadEnvFile(const std::string& volume_path, const std::string& path,
                                               std::string_view key);

}  // namespace keelson::kubelet
