#include "kubelet/stats/directory_usage.h"

#include <fts.h>
#include <sys/stat.h>

#include <set>

namespace keelson::kubelet {

DirectoryUsage UsageOfDirectory(const std::string& path) {
  DirectoryUsage out;
  std::string root = path;
  char* const roots[] = {root.data(), nullptr};
  FTS* tree = ::fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR | FTS_XDEV, nullptr);
  if (!tree) return out;
  std::set<ino_t> seen;  // of files with several names
  while (FTSENT* entry = ::fts_read(tree)) {
    if (entry->fts_info == FTS_DP || entry->fts_info == FTS_NS || entry->fts_info == FTS_ERR) continue;
    const struct stat& info = *entry->fts_statp;
    if (!S_ISDIR(info.st_mode) && info.st_nlink > 1 && !seen.insert(info.st_ino).second) continue;
    out.bytes += static_cast<int64_t>(info.st_blocks) * 512;
    ++out.inodes;
  }
  ::fts_close(tree);
  return out;
}

}  // namespace keelson::kubelet
