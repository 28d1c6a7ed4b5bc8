#include "lib/linux/netns.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <linux/nsfs.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <cstdlib>
#include <thread>

#include "lib/base/file.h"

#ifndef SO_NETNS_COOKIE
#define SO_NETNS_COOKIE 71
#endif

namespace keelson::linux {

Result<NetNs> NetNs::FromFd(UniqueFd fd, const std::string& what) {
  struct statfs fs;
  if (::fstatfs(fd.get(), &fs) != 0) return ErrnoError("statfs " + what);
  if (fs.f_type != NSFS_MAGIC || ::ioctl(fd.get(), NS_GET_NSTYPE) != CLONE_NEWNET) {
    return Error(Code::kInvalid, what + " is not a network namespace");
  }
  struct stat st;
  if (::fstat(fd.get(), &st) != 0) return ErrnoError("stat " + what);
  return NetNs(std::move(fd), st.st_ino);
}

Result<NetNs> NetNs::Open(const std::string& path) {
  KEELSON_ASSIGN_OR_RETURN(UniqueFd fd, OpenFile(path, O_RDONLY));
  return FromFd(std::move(fd), path);
}

Result<NetNs> NetNs::OpenCurrent() { return Open("/proc/thread-self/ns/net"); }

Result<NetNs> NetNs::Make() {
  Result<NetNs> made = Error(Code::kInternal, "not made");
  std::thread([&] {
    if (::unshare(CLONE_NEWNET) != 0) {
      made = ErrnoError("make a network namespace");
    } else {
      made = OpenCurrent();
    }
  }).join();
  return made;
}

Result<> NetNs::Run(const std::function<Result<>()>& body) const {
  Result<> result;
  std::thread([&] {
    if (::setns(fd_.get(), CLONE_NEWNET) != 0) {
      result = ErrnoError("enter network namespace");
    } else {
      result = body();
    }
  }).join();
  return result;
}

Result<> NetNs::RunHere(const std::function<Result<>()>& body) const {
  KEELSON_ASSIGN_OR_RETURN(UniqueFd home, OpenFile("/proc/thread-self/ns/net", O_RDONLY));
  if (::setns(fd_.get(), CLONE_NEWNET) != 0) return ErrnoError("enter network namespace");
  Result<> result = body();
  if (::setns(home.get(), CLONE_NEWNET) != 0) std::abort();
  return result;
}

Result<> NetNs::BindTo(const std::string& path) const {
  KEELSON_ASSIGN_OR_RETURN(UniqueFd file, OpenFile(path, O_RDONLY | O_CREAT | O_EXCL, 0444));
  std::string source = "/proc/self/fd/" + std::to_string(fd_.get());
  if (::mount(source.c_str(), path.c_str(), nullptr, MS_BIND, nullptr) != 0) {
    Error error = ErrnoError("bind network namespace to " + path);
    ::unlink(path.c_str());
    return error;
  }
  return {};
}

Result<uint64_t> NetnsCookie() {
  UniqueFd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket) return ErrnoError("socket");
  uint64_t cookie = 0;
  socklen_t size = sizeof cookie;
  if (::getsockopt(socket.get(), SOL_SOCKET, SO_NETNS_COOKIE, &cookie, &size) != 0) {
    if (errno != ENOPROTOOPT) return ErrnoError("SO_NETNS_COOKIE");
    return Error(Code::kUnimplemented,
                 "this kernel lacks the socket option SO_NETNS_COOKIE, which Linux has since 5.14");
  }
  return cookie;
}

Result<> RemoveNetNs(const std::string& path) {
  if (::umount2(path.c_str(), MNT_DETACH | UMOUNT_NOFOLLOW) != 0 && errno != EINVAL && errno != ENOENT) {
    return ErrnoError("unmount " + path);
  }
  return RemoveFile(path);
}

}  // namespace keelson::linux
