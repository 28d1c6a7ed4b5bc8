// Files of variables that containers write for those that start after them (env[].valueFrom.fileKeyRef).
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

// The value of `key` in the text; nullopt when it is not there. kInvalid, with the line, for anything that is
// not of the form above.
Result<std::optional<std::string>> FindInEnvFile(std::string_view text, std::string_view key);

// The same of a file below a volume, which a container may have written: no symlink leads out of the volume,
// and what is larger than 64 KiB is not read.
Result<std::optional<std::string>> ReadEnvFile(const std::string& volume_path, const std::string& path,
                                               std::string_view key);

}  // namespace keelson::kubelet
