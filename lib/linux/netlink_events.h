// What the kernel tells over netlink to whoever listens, message by message. One waiting thread at a time.
#pragma once

#include <chrono>
#include <functional>
#include <stop_token>

#include "lib/base/error.h"
#include "lib/base/fd.h"

struct nlmsghdr;

namespace keelson::linux {

class NetlinkEvents {
 public:
  // Of a protocol (NETLINK_...), in the calling thread's network namespace.
  static Result<NetlinkEvents> Open(int protocol);
  // Whether the kernel is to tell of a group. From any thread.
  Result<> Listen(int group, bool on);

  // Hands out all that has come, null in place of what did not fit; blocks until something has that `each`
  // says true to. kTimeout after `timeout`, kCancelled by `stop`.
  Result<> Wait(std::stop_token stop, std::chrono::milliseconds timeout,
                const std::function<bool(const nlmsghdr*)>& each);

 private:
  NetlinkEvents(UniqueFd fd, UniqueFd wake) : fd_(std::move(fd)), wake_(std::move(wake)) {}
  UniqueFd fd_, wake_;
};

}  // namespace keelson::linux
