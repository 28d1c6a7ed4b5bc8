// Paths that requests name.
#pragma once

#include <string_view>

namespace keelson::csi::local {

// Absolute, at most PATH_MAX, without empty parts, "." and "..", NUL, or a slash at the end.
bool IsCleanAbsolutePath(std::string_view path);

}  // namespace keelson::csi::local
