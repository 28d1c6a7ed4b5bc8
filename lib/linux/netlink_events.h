// The kernel's netlink notifications, message by message. One waiting thread at a time.
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
  // Opens a socket for `protocol` (NETLINK_...) in the calling thread's network namespace.
  static Result<NetlinkEvents> Open(int protocol);
  // Joins or leaves a multicast group. From any thread.
  Result<> Listen(int group, bool on);

  // Passes each message to `each`, and null in place of messages that were lost to overflow. Returns once
  // `each` has returned true for one of a batch. kTimeout after `timeout`, kCancelled on `stop`.
  Result<> Wait(std::stop_token stop, std::chrono::milliseconds timeout,
                const std::function<bool(const nlmsghdr*)>& each);

 private:
  NetlinkEvents(UniqueFd fd, UniqueFd wake) : fd_(std::move(fd)), wake_(std::move(wake)) {}
  UniqueFd fd_, wake_;
};

}  // namespace keelson::linux
