#include "csi/local/host/image.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <vector>

#include "lib/base/fd.h"
#include "lib/base/file.h"
#include "lib/base/log.h"

namespace keelson::csi::local {

namespace {

constexpr mode_t kImageMode = 0600;
constexpr int64_t kPiece = 64 << 20;  // copied between two looks at `stopped`
constexpr size_t kBuffer = size_t{1} << 20;

Result<> Sync(int fd, const std::string& path) {
  if (::fsync(fd) != 0) return ErrnoError("fsync " + path);
  return {};
}

Result<> SyncDirectoryOf(const std::string& path) {
  const std::string directory = path.substr(0, path.rfind('/'));
  KEELSON_ASSIGN_OR_RETURN(UniqueFd fd, OpenFile(directory, O_RDONLY | O_DIRECTORY));
  return Sync(fd.get(), directory);
}

Result<> Reserve(int fd, int64_t size, const std::string& path) {
  if (::fallocate(fd, 0, 0, size) == 0) return {};
  if (errno == EOPNOTSUPP) {
    return Error(Code::kConflict, "the file system of " + path + " cannot reserve space: no thick volumes");
  }
  return ErrnoError("reserve " + std::to_string(size) + " bytes for " + path);
}

// The next run of data at or after `at`; false: only a hole follows.
Result<bool> NextData(int fd, const std::string& path, int64_t at, int64_t& begin, int64_t& end) {
  begin = ::lseek(fd, at, SEEK_DATA);
  if (begin < 0) {
    if (errno == ENXIO) return false;
    return ErrnoError("find data of " + path);
  }
  end = ::lseek(fd, begin, SEEK_HOLE);
  if (end < 0) return ErrnoError("find a hole of " + path);
  return true;
}

// A copy that fills the disk would take the room of all thin volumes.
Result<> CheckRoom(int fd, int64_t bytes, const std::string& path) {
  struct statvfs info = {};
  if (::fstatvfs(fd, &info) != 0) return ErrnoError("statvfs " + path);
  const int64_t available = static_cast<int64_t>(info.f_bavail * info.f_frsize);
  if (bytes <= available) return {};
  return Error(Code::kTooManyRequests, "not enough space for a copy of " + std::to_string(bytes) +
                                           " bytes, " + std::to_string(available) + " are free");
}

// Without copy_file_range(2), which not every file system has.
Result<int64_t> CopyByHand(int from, int to, int64_t at, int64_t count, const std::string& path) {
  std::vector<char> buffer(std::min<size_t>(kBuffer, static_cast<size_t>(count)));
  const ssize_t got = ::pread(from, buffer.data(), buffer.size(), at);
  if (got < 0) return ErrnoError("read " + path);
  for (ssize_t done = 0; done < got;) {
    const ssize_t n = ::pwrite(to, buffer.data() + done, static_cast<size_t>(got - done), at + done);
    if (n < 0) return ErrnoError("write a copy of " + path);
    done += n;
  }
  return got;
}

Result<int64_t> CopySome(int from, int to, int64_t at, int64_t count, const std::string& path) {
  loff_t in = at, out = at;
  const ssize_t n = ::copy_file_range(from, &in, to, &out, static_cast<size_t>(std::min(count, kPiece)), 0);
  if (n > 0) return n;
  if (n < 0 && errno != EXDEV && errno != EINVAL && errno != ENOSYS && errno != EOPNOTSUPP) {
    return ErrnoError("copy " + path);
  }
  return CopyByHand(from, to, at, count, path);
}

Result<> CopyData(int from, int to, const std::string& path, const std::function<bool()>& stopped) {
  int64_t begin = 0, end = 0;
  for (int64_t at = 0;; at = end) {
    KEELSON_ASSIGN_OR_RETURN(bool more, NextData(from, path, at, begin, end));
    if (!more) return {};
    while (begin < end) {
      if (stopped()) return Error(Code::kCancelled, "copy " + path + ": the driver stops");
      KEELSON_ASSIGN_OR_RETURN(int64_t n, CopySome(from, to, begin, end - begin, path));
      if (n == 0) return {};  // the file has become shorter
      begin += n;
    }
  }
}

}  // namespace

Result<ImageSize> SizeOf(const std::string& path) {
  struct stat info = {};
  if (::lstat(path.c_str(), &info) != 0) return ErrnoError("stat " + path);
  if (!S_ISREG(info.st_mode)) return Error(Code::kInternal, path + " is not a regular file");
  return ImageSize{info.st_size, int64_t{info.st_blocks} * 512};
}

Result<> MakeImage(const std::string& path, int64_t size, bool thick) {
  KEELSON_ASSIGN_OR_RETURN(UniqueFd fd, OpenFile(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, kImageMode));
  if (::ftruncate(fd.get(), size) != 0) return ErrnoError("set the size of " + path);
  if (thick) KEELSON_RETURN_IF_ERROR(Reserve(fd.get(), size, path));
  return Sync(fd.get(), path);
}

Result<> GrowImage(const std::string& path, int64_t size, bool thick) {
  KEELSON_ASSIGN_OR_RETURN(UniqueFd fd, OpenFile(path, O_RDWR | O_NOFOLLOW));
  struct stat info = {};
  if (::fstat(fd.get(), &info) != 0) return ErrnoError("stat " + path);
  if (info.st_size < size && ::ftruncate(fd.get(), size) != 0) return ErrnoError("set the size of " + path);
  if (thick) KEELSON_RETURN_IF_ERROR(Reserve(fd.get(), size, path));
  return Sync(fd.get(), path);
}

Result<> CopyImage(const std::string& from, const std::string& to, Copying copying,
                   const std::function<bool()>& stopped) {
  KEELSON_ASSIGN_OR_RETURN(UniqueFd in, OpenFile(from, O_RDONLY | O_NOFOLLOW));
  KEELSON_ASSIGN_OR_RETURN(UniqueFd out, OpenFile(to, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, kImageMode));
  if (copying != Copying::kOwn) {
    if (::ioctl(out.get(), FICLONE, in.get()) == 0) return Sync(out.get(), to);
    if (errno != EOPNOTSUPP && errno != EINVAL && errno != ENOTTY && errno != EXDEV) {
      return ErrnoError("share the blocks of " + from);
    }
    if (copying == Copying::kShared) {
      return Error(Code::kConflict, "the file system of " + from + " cannot share blocks");
    }
  }
  struct stat info = {};
  if (::fstat(in.get(), &info) != 0) return ErrnoError("stat " + from);
  const int64_t taken = int64_t{info.st_blocks} * 512;
  if (copying == Copying::kAny) {
    log::Warn(
        "Blocks are copied: the file system cannot share them, so snapshots and clones take time and space",
        {{"file", from}, {"bytes", taken}});
  }
  KEELSON_RETURN_IF_ERROR(CheckRoom(out.get(), taken, to));
  if (::ftruncate(out.get(), info.st_size) != 0) return ErrnoError("set the size of " + to);
  KEELSON_RETURN_IF_ERROR(CopyData(in.get(), out.get(), from, stopped));
  return Sync(out.get(), to);
}

Result<bool> IsZeros(const std::string& path) {
  KEELSON_ASSIGN_OR_RETURN(UniqueFd fd, OpenFile(path, O_RDONLY | O_NOFOLLOW));
  std::vector<char> buffer(kBuffer);
  int64_t begin = 0, end = 0;
  for (int64_t at = 0;; at = end) {
    KEELSON_ASSIGN_OR_RETURN(bool more, NextData(fd.get(), path, at, begin, end));
    if (!more) return true;
    while (begin < end) {
      const size_t count = std::min(buffer.size(), static_cast<size_t>(end - begin));
      const ssize_t n = ::pread(fd.get(), buffer.data(), count, begin);
      if (n < 0) return ErrnoError("read " + path);
      if (n == 0) return true;
      if (std::any_of(buffer.begin(), buffer.begin() + n, [](char c) { return c != 0; })) return false;
      begin += n;
    }
  }
}

Result<> RenameForGood(const std::string& from, const std::string& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) return ErrnoError("rename " + from + " to " + to);
  KEELSON_RETURN_IF_ERROR(SyncDirectoryOf(to));
  return SyncDirectoryOf(from);
}

Result<> RemoveForGood(const std::string& path) {
  KEELSON_RETURN_IF_ERROR(RemoveFile(path));
  return SyncDirectoryOf(path);
}

}  // namespace keelson::csi::local
