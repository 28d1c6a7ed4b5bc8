#include "kubelet/volume/usage.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <memory>
#include <set>
#include <utility>

#include "lib/base/fd.h"
#include "lib/base/file.h"

namespace keelson::kubelet {

namespace {

constexpr uint64_t kBlock = 512;  // of st_blocks
constexpr int kMaxDepth = 256;    // deeper trees than that are there to annoy

class Walk {
 public:
  explicit Walk(std::stop_token stop) : stop_(std::move(stop)) {}

  Result<> Root(const std::string& path) {
    ASSIGN_OR_RETURN(UniqueFd fd, OpenFile(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
    struct stat info = {};
    if (::fstat(fd.get(), &info) != 0) return ErrnoError("stat " + path);
    device_ = info.st_dev;
    Count(info);
    return Directory(std::move(fd), 0);
  }

  DiskUsage usage;

 private:
  void Count(const struct stat& info) {
    if (!S_ISDIR(info.st_mode) && info.st_nlink > 1 && !seen_.insert(info.st_ino).second) return;
    usage.bytes += static_cast<uint64_t>(info.st_blocks) * kBlock;
    ++usage.inodes;
  }

  Result<> Directory(UniqueFd fd, int depth) {
    if (stop_.stop_requested()) return Error(Code::kCancelled, "measuring was cut short");
    int at = fd.get();
    std::unique_ptr<DIR, int (*)(DIR*)> dir(::fdopendir(at), ::closedir);
    if (!dir) return ErrnoError("read directory");
    (void)fd.Release();
    while (const dirent* entry = ::readdir(dir.get())) {
      std::string name = entry->d_name;
      if (name == "." || name == "..") continue;
      struct stat info = {};
      if (::fstatat(at, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0 || info.st_dev != device_) continue;
      Count(info);
      if (!S_ISDIR(info.st_mode) || depth == kMaxDepth) continue;
      int child = ::openat(at, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
      if (child >= 0) RETURN_IF_ERROR(Directory(UniqueFd(child), depth + 1));
    }
    return {};
  }

  std::stop_token stop_;
  dev_t device_ = 0;
  std::set<ino_t> seen_;  // of files with several names
};

}  // namespace

Result<DiskUsage> MeasureTree(const std::string& path, std::stop_token stop) {
  Walk walk(std::move(stop));
  RETURN_IF_ERROR(walk.Root(path));
  return walk.usage;
}

}  // namespace keelson::kubelet
