// Opens paths below a directory that other processes may be changing.
#pragma once

#include <fcntl.h>

#include <string>

#include "lib/base/error.h"
#include "lib/base/fd.h"

namespace keelson::linux {

// Opens `path` below the open directory `root`. Symlinks are followed as long as they stay below `root`;
// one that leads out, even if it appears meanwhile, is an error with errno EXDEV. Linux 5.6 and later.
Result<UniqueFd> OpenBeneath(int root, const std::string& path, int flags = O_PATH);
// Like OpenBeneath(), but no part of the path may be a symlink, wherever it leads: errno ELOOP.
Result<UniqueFd> OpenWithoutLinks(int root, const std::string& path, int flags);

}  // namespace keelson::linux
