// Network namespaces. A namespace is a property of a thread: work inside another one happens on a thread
// that is made for it and then ends, so that no pool thread ever stays in a foreign namespace.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "lib/base/error.h"
#include "lib/base/fd.h"

namespace keelson::linux {

class NetNs {
 public:
  // A path such as /run/netns/NAME or /proc/PID/ns/net. kNotFound when absent, kInvalid when it is
  // something else than a network namespace.
  static Result<NetNs> Open(const std::string& path);
  static Result<NetNs> OpenCurrent();  // the calling thread's
  // A fresh one, with loopback down; it lives as long as this object, its sockets and processes.
  static Result<NetNs> Make();

  int fd() const { return fd_.get(); }
  uint64_t inode() const { return inode_; }  // two objects are the same namespace if these are equal

  // Runs `body` inside the namespace on a thread of its own and waits for it.
  Result<> Run(const std::function<Result<>()>& body) const;
  // The same on the calling thread, which is back in its own namespace afterwards: for programs of one
  // thread that cannot spare the time to make another. Aborts when there is no way back.
  Result<> RunHere(const std::function<Result<>()>& body) const;
  // Gives it a name that keeps it alive: an empty file at `path`, bind mounted.
  Result<> BindTo(const std::string& path) const;

 private:
  NetNs(UniqueFd fd, uint64_t inode) : fd_(std::move(fd)), inode_(inode) {}
  static Result<NetNs> FromFd(UniqueFd fd, const std::string& what);
  UniqueFd fd_;
  uint64_t inode_;
};

// Undoes BindTo; absent is fine.
Result<> RemoveNetNs(const std::string& path);

}  // namespace keelson::linux
