#include "lib/linux/beneath.h"

#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace keelson::linux {

Result<UniqueFd> OpenBeneath(int root, const std::string& path, int flags) {
  open_how how = {};
  how.flags = static_cast<uint64_t>(flags | O_CLOEXEC);
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
  long fd = ::syscall(SYS_openat2, root, path.c_str(), &how, sizeof(how));
  if (fd < 0) return ErrnoError("open " + path);
  return UniqueFd(static_cast<int>(fd));
}

}  // namespace keelson::linux
