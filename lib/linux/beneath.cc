#include "lib/linux/beneath.h"

#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace keelson::linux {

namespace {

Result<UniqueFd> Open(int root, const std::string& path, int flags, uint64_t resolve) {
  open_how how = {};
  how.flags = static_cast<uint64_t>(flags | O_CLOEXEC);
  how.resolve = RESOLVE_BENEATH | resolve;
  long fd = ::syscall(SYS_openat2, root, path.c_str(), &how, sizeof(how));
  if (fd < 0) return ErrnoError("open " + path);
  return UniqueFd(static_cast<int>(fd));
}

}  // namespace

Result<UniqueFd> OpenBeneath(int root, const std::string& path, int flags) {
  return Open(root, path, flags, RESOLVE_NO_MAGICLINKS);
}

Result<UniqueFd> OpenWithoutLinks(int root, const std::string& path, int flags) {
  return Open(root, path, flags, RESOLVE_NO_SYMLINKS);
}

}  // namespace keelson::linux
