#include "csi/local/host/project_quota.h"

#include <fcntl.h>
#include <linux/dqblk_xfs.h>
#include <linux/fs.h>
#include <linux/quota.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "lib/base/fd.h"
#include "lib/base/file.h"

namespace keelson::csi::local {

namespace {

constexpr int64_t kQuotaBlock = 512;  // of struct fs_disk_quota

// The commands of XFS: the kernel answers them for ext4 too.
int Quotactl(int fd, int command, int64_t project, void* data) {
  return static_cast<int>(
      ::syscall(SYS_quotactl_fd, fd, QCMD(command, PRJQUOTA), static_cast<uint32_t>(project), data));
}

Result<UniqueFd> Open(const std::string& path) { return OpenFile(path, O_RDONLY | O_DIRECTORY); }

}  // namespace

Result<bool> HasProjectQuotas(const std::string& path) {
  KEELSON_ASSIGN_OR_RETURN(UniqueFd fd, Open(path));
  struct fs_quota_statv state = {};
  state.qs_version = FS_QSTATV_VERSION1;
  if (Quotactl(fd.get(), Q_XGETQSTATV, 0, &state) == 0) {
    constexpr uint32_t kBoth = FS_QUOTA_PDQ_ACCT | FS_QUOTA_PDQ_ENFD;
    return (state.qs_flags & kBoth) == kBoth;
  }
  // Neither the kernel, nor the file system, nor this mount of it has them.
  for (int absent : {ENOSYS, ESRCH, EOPNOTSUPP, EINVAL, ENODEV}) {
    if (errno == absent) return false;
  }
  return ErrnoError("ask for quotas of " + path);
}

Result<> SetProject(const std::string& directory, int64_t project) {
  KEELSON_ASSIGN_OR_RETURN(UniqueFd fd, Open(directory));
  struct fsxattr attributes = {};
  if (::ioctl(fd.get(), FS_IOC_FSGETXATTR, &attributes) != 0) {
    return ErrnoError("read the project of " + directory);
  }
  attributes.fsx_projid = static_cast<uint32_t>(project);
  attributes.fsx_xflags |= FS_XFLAG_PROJINHERIT;
  if (::ioctl(fd.get(), FS_IOC_FSSETXATTR, &attributes) != 0) {
    return ErrnoError("set the project of " + directory);
  }
  return {};
}

Result<> SetProjectLimit(const std::string& path, int64_t project, int64_t bytes) {
  KEELSON_ASSIGN_OR_RETURN(UniqueFd fd, Open(path));
  struct fs_disk_quota quota = {};
  quota.d_version = FS_DQUOT_VERSION;
  quota.d_flags = FS_PROJ_QUOTA;
  quota.d_id = static_cast<uint32_t>(project);
  quota.d_fieldmask = FS_DQ_BHARD | FS_DQ_BSOFT;
  quota.d_blk_hardlimit = static_cast<uint64_t>(bytes / kQuotaBlock);
  if (Quotactl(fd.get(), Q_XSETQLIM, project, &quota) == 0) return {};
  return ErrnoError("limit project " + std::to_string(project) + " of " + path);
}

Result<ProjectUse> ProjectUseOf(const std::string& path, int64_t project) {
  KEELSON_ASSIGN_OR_RETURN(UniqueFd fd, Open(path));
  struct fs_disk_quota quota = {};
  if (Quotactl(fd.get(), Q_XGETQUOTA, project, &quota) == 0) {
    return ProjectUse{static_cast<int64_t>(quota.d_blk_hardlimit) * kQuotaBlock,
                      static_cast<int64_t>(quota.d_bcount) * kQuotaBlock};
  }
  if (errno == ENOENT || errno == ESRCH) return ProjectUse{};
  return ErrnoError("read the use of project " + std::to_string(project) + " of " + path);
}

}  // namespace keelson::csi::local
