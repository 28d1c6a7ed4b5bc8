#include "csi/local/host/filesystem.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/statvfs.h>

#include <cerrno>
#include <vector>

#include "csi/local/host/run.h"
#include "lib/base/fd.h"
#include "lib/base/file.h"
#include "lib/base/log.h"
#include "lib/base/text.h"
#include "lib/linux/disk.h"

namespace keelson::csi::local {

namespace {

constexpr int kMended = 1 | 2;  // bits of e2fsck(8)'s exit code; all others are failures

Result<> MustRun(const std::vector<std::string>& argv) {
  KEELSON_ASSIGN_OR_RETURN(Ended ended, RunProgram(argv));
  return ended.status.ok() ? Result<>() : ProgramError(argv, ended);
}

// argv: e2fsck and a device.
Result<> Check(const std::vector<std::string>& argv) {
  KEELSON_ASSIGN_OR_RETURN(Ended ended, RunProgram(argv));
  if (ended.status.ok()) return {};
  if (ended.status.signal == 0 && (ended.status.code & ~kMended) == 0) {
    log::Warn("e2fsck mended a file system", {{"device", argv.back()}, {"output", ended.output}});
    return {};
  }
  return ProgramError(argv, ended);
}

// Bytes that the superblock of ext4 counts (ext4(5), Documentation/filesystems/ext4/super.rst).
Result<int64_t> Ext4Size(const std::string& device) {
  constexpr size_t kSuperblock = 1024, kBlocksLow = 0x4, kBlockSizeLog = 0x18, kIncompatible = 0x60,
                   kBlocksHigh = 0x150;
  constexpr uint32_t k64Bit = 0x80;
  KEELSON_ASSIGN_OR_RETURN(UniqueFd fd, OpenFile(device, O_RDONLY));
  unsigned char block[1024] = {};
  if (::pread(fd.get(), block, sizeof block, kSuperblock) != sizeof block) {
    return ErrnoError("read the superblock of " + device);
  }
  const auto word = [&](size_t at) {
    return static_cast<uint32_t>(block[at]) | static_cast<uint32_t>(block[at + 1]) << 8 |
           static_cast<uint32_t>(block[at + 2]) << 16 | static_cast<uint32_t>(block[at + 3]) << 24;
  };
  uint64_t blocks = word(kBlocksLow);
  if (word(kIncompatible) & k64Bit) blocks |= static_cast<uint64_t>(word(kBlocksHigh)) << 32;
  // Of damaged superblocks e2fsck says more.
  return static_cast<int64_t>(blocks << (10 + (word(kBlockSizeLog) & 0xf)));
}

// Bytes that the superblock of XFS counts (Documentation/filesystems/xfs: struct xfs_dsb); the kernel writes it some time
// after a growth.
Result<int64_t> XfsSize(const std::string& device) {
  constexpr size_t kBlockSize = 4, kBlocks = 8;
  KEELSON_ASSIGN_OR_RETURN(UniqueFd fd, OpenFile(device, O_RDONLY));
  unsigned char block[512] = {};
  if (::pread(fd.get(), block, sizeof block, 0) != sizeof block) {
    return ErrnoError("read the superblock of " + device);
  }
  const auto number = [&](size_t at, size_t bytes) {
    uint64_t out = 0;
    for (size_t i = 0; i < bytes; ++i) out = out << 8 | block[at + i];
    return out;
  };
  return static_cast<int64_t>(number(kBlocks, 8) * number(kBlockSize, 4));
}

}  // namespace

Result<> Format(const std::string& file, const std::string& type, bool again) {
  // -m0: no room set aside for root; -F: it is a file, and that is fine.
  if (type == "ext4") return MustRun({"mkfs.ext4", "-q", "-F", "-m0", file});
  if (type == "xfs" && again) return MustRun({"mkfs.xfs", "-q", "-f", file});
  if (type == "xfs") return MustRun({"mkfs.xfs", "-q", file});
  return Error(Code::kInvalid, "file system \"" + type + "\" is not known");
}

Result<std::string> FileSystemOn(const std::string& file) {
  auto found = linux::ProbeDisk(file);
  if (!found && found.error().Is(Code::kInvalid) && found.error().errnum() == 0) {
    return Error(Code::kConflict, found.error().message());
  }
  if (!found) return found.error();
  if (!found->partition_table.empty()) {
    return Error(Code::kConflict, file + " holds a partition table (" + found->partition_table + ")");
  }
  return found->fs_type;
}

Result<> CheckAndGrow(const std::string& device, const std::string& type, int64_t size) {
  if (type != "ext4") return {};
  KEELSON_ASSIGN_OR_RETURN(const int64_t holds, Ext4Size(device));
  if (holds >= size) return Check({"e2fsck", "-p", device});
  // resize2fs asks for a full check.
  KEELSON_RETURN_IF_ERROR(Check({"e2fsck", "-f", "-p", device}));
  return MustRun({"resize2fs", device});
}

Result<> Grow(const std::string& device, const std::string& mounted_at, const std::string& type,
              int64_t size) {
  // A kubelet that starts again stages all volumes again: that has to be cheap.
  if (type == "ext4") {
    KEELSON_ASSIGN_OR_RETURN(const int64_t holds, Ext4Size(device));
    return holds >= size ? Result<>() : MustRun({"resize2fs", device});
  }
  if (type == "xfs") {
    KEELSON_ASSIGN_OR_RETURN(const int64_t holds, XfsSize(device));
    return holds >= size ? Result<>() : MustRun({"xfs_growfs", "-d", mounted_at});
  }
  return Error(Code::kInternal, "file system \"" + type + "\" cannot grow");
}

Result<> Freeze(const std::string& mounted_at) {
  KEELSON_ASSIGN_OR_RETURN(UniqueFd fd, OpenFile(mounted_at, O_RDONLY | O_DIRECTORY));
  if (::ioctl(fd.get(), FIFREEZE, 0) == 0) return {};
  if (errno == EBUSY) return Error(Code::kConflict, mounted_at + " is frozen already");
  return ErrnoError("freeze " + mounted_at);
}

Result<> Thaw(const std::string& mounted_at) {
  KEELSON_ASSIGN_OR_RETURN(UniqueFd fd, OpenFile(mounted_at, O_RDONLY | O_DIRECTORY));
  if (::ioctl(fd.get(), FITHAW, 0) != 0 && errno != EINVAL) return ErrnoError("thaw " + mounted_at);
  return {};
}

Result<Usage> UsageOf(const std::string& path) {
  struct statvfs info = {};
  if (::statvfs(path.c_str(), &info) != 0) return ErrnoError("statvfs " + path);
  const auto bytes = [&](fsblkcnt_t blocks) { return static_cast<int64_t>(blocks * info.f_frsize); };
  Usage out;
  out.total = bytes(info.f_blocks);
  out.available = bytes(info.f_bavail);
  out.used = bytes(info.f_blocks - info.f_bfree);
  out.inodes = static_cast<int64_t>(info.f_files);
  out.free_inodes = static_cast<int64_t>(info.f_ffree);
  out.used_inodes = out.inodes - out.free_inodes;
  return out;
}

}  // namespace keelson::csi::local
