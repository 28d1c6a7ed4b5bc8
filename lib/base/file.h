// Small whole-file helpers. Paths are used as given; errors carry the path and errno.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

#include "lib/base/error.h"
#include "lib/base/fd.h"

namespace keelson {

Result<UniqueFd> OpenFile(const std::string& path, int flags, mode_t mode = 0644);  // O_CLOEXEC added
Result<std::string> ReadFile(const std::string& path);
// The rest of the file from the current offset. `what` goes into errors.
Result<std::string> ReadAll(int fd, std::string_view what);
Result<> WriteAll(int fd, std::string_view data, std::string_view what);
// Truncates or creates the file; not atomic. For kernel files (cgroup, sysctl) and the like.
Result<> WriteFile(const std::string& path, std::string_view data, mode_t mode = 0644);
// Replaces the file so that readers see the old or the new content, never a mix, even after kill -9 or
// power loss: temporary file in the same directory, fsync, rename, fsync of the directory.
Result<> WriteFileAtomic(const std::string& path, std::string_view data, mode_t mode = 0644);
Result<> MakeDirs(const std::string& path, mode_t mode = 0755);  // mkdir -p
Result<> RemoveFile(const std::string& path);                    // absent is fine
Result<> RemoveTree(const std::string& path);                    // absent is fine; follows no symlink
bool PathExists(const std::string& path);
Result<std::vector<std::string>> ListDir(const std::string& path);  // sorted names without . and ..

}  // namespace keelson
