#include "kubelet/node/lock_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/inotify.h>

#include <cerrno>

#include "lib/base/file.h"

namespace keelson::kubelet {

Result<LockFile> LockFile::Take(const std::string& path) {
  KEELSON_ASSIGN_OR_RETURN(UniqueFd fd, OpenFile(path, O_CREAT | O_RDWR, 0600));
  KEELSON_ASSIGN_OR_RETURN(event::Inotify others, event::Inotify::Create());
  KEELSON_RETURN_IF_ERROR(
      others.Add(path, IN_OPEN | IN_DELETE_SELF));  // also of a process that starts during the wait
  while (::flock(fd.get(), LOCK_EX) != 0) {
    if (errno != EINTR) return ErrnoError("lock " + path);
  }
  return LockFile(std::move(fd), std::move(others));
}

Result<> LockFile::AwaitOther(std::stop_token stop) {
  while (true) {
    auto seen = others_.Wait(stop, std::chrono::hours(1));
    if (seen) return {};
    if (!seen.error().Is(Code::kTimeout)) return seen.error();
  }
}

}  // namespace keelson::kubelet
