// Project quotas: how many bytes the files of a tree may take (quotactl(2), ioctl_xfs_fsgetxattr(2)). XFS and ext4 have
// them where they are mounted with prjquota. Linux 5.14 and later.
#pragma once

#include <cstdint>
#include <string>

#include "lib/base/error.h"

namespace keelson::csi::local {

// Whether the file system at `path` counts project quotas and enforces their limits.
Result<bool> HasProjectQuotas(const std::string& path);
// Gives an empty directory to the project, with what is made in it from now on.
Result<> SetProject(const std::string& directory, int64_t project);
// Of the project on the file system at `path`. 0: no limit.
Result<> SetProjectLimit(const std::string& path, int64_t project, int64_t bytes);

struct ProjectUse {
  int64_t limit = 0, used = 0;  // bytes
};
Result<ProjectUse> ProjectUseOf(const std::string& path, int64_t project);  // zeros for one that is unknown

}  // namespace keelson::csi::local
