// Kernel parameters below /proc/sys. Keys are paths ("net/ipv4/conf/eth0.1/forwarding"), because interface
// names may contain dots. Keys below net/ belong to the calling thread's network namespace.
#pragma once

#include <string>
#include <string_view>

#include "lib/base/error.h"

namespace keelson::linux {

Result<std::string> ReadSysctl(std::string_view key);  // without the trailing newline
Result<> WriteSysctl(std::string_view key, std::string_view value);
// Writes only when the value differs, so it succeeds on a read-only /proc/sys that already holds `value`.
Result<> EnsureSysctl(std::string_view key, std::string_view value);

}  // namespace keelson::linux
