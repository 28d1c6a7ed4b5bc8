// Network namespaces. A namespace is a property of a thread, so work inside another one happens on a thread
// made for it that then ends: no pool thread ever stays in a foreign namespace.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "lib/base/error.h"
#include "lib/base/fd.h"

namespace keelson::linux {

class NetNs {
 public:
  // `path` is like /run/netns/NAME or /proc/PID/ns/net. kNotFound when absent, kInvalid when it is no
  // network namespace.
  static Result<NetNs> Open(const std::string& path);
  static Result<NetNs> OpenCurrent();  // the calling thread's
  // A new namespace, with loopback down. It lives as long as this object and the sockets and processes
  // inside.
  static Result<NetNs> Make();

  int fd() const { return fd_.get(); }
  uint64_t inode() const { return inode_; }  // two objects are the same namespace if these are equal

  // Runs `body` inside the namespace on a new thread and waits for it.
  Result<> Run(const std::function<Result<>()>& body) const;
  // Like Run(), on the calling thread, which is back in its own namespace afterwards: for single-threaded
  // programs that cannot afford another thread. Aborts if the way back fails.
  Result<> RunHere(const std::function<Result<>()>& body) const;
  // Gives the namespace a name that keeps it alive: an empty file at `path`, bind mounted.
  Result<> BindTo(const std::string& path) const;

 private:
  NetNs(UniqueFd fd, uint64_t inode) : fd_(std::move(fd)), inode_(inode) {}
  static Result<NetNs> FromFd(UniqueFd fd, const std::string& what);
  UniqueFd fd_;
  uint64_t inode_;
};

// The kernel's number for the calling thread's network namespace, as eBPF programs see it
// (bpf_get_netns_cookie). kUnimplemented before Linux 5.14.
Result<uint64_t> NetnsCookie();

// Undoes BindTo(). An absent `path` is fine.
Result<> RemoveNetNs(const std::string& path);

}  // namespace keelson::linux
