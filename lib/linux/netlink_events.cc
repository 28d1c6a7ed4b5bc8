#include "lib/linux/netlink_events.h"

#include <linux/netlink.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <cerrno>
#include <memory>

namespace keelson::linux {
namespace {

constexpr size_t kBufferSize = 64 << 10;

// Hands out all pending messages. True: `each` returned true for one.
Result<bool> Drain(int fd, const std::function<bool(const nlmsghdr*)>& each) {
  // On the heap: every thread of the program would carry its own copy of a thread_local array.
  static thread_local const auto buffer = std::make_unique<char[]>(kBufferSize);
  bool any = false;
  for (;;) {
    ssize_t got = ::recv(fd, buffer.get(), kBufferSize, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return any;
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == ENOBUFS) {
      any = each(nullptr) || any;
      continue;
    }
    if (got < 0) return ErrnoError("receive kernel events");
    auto left = static_cast<unsigned>(got);
    for (auto* message = reinterpret_cast<const nlmsghdr*>(buffer.get()); NLMSG_OK(message, left);
         message = NLMSG_NEXT(message, left)) {
      any = each(message) || any;
    }
  }
}

}  // namespace

Result<NetlinkEvents> NetlinkEvents::Open(int protocol) {
  UniqueFd fd(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, protocol));
  if (!fd) return ErrnoError("open netlink socket");
  sockaddr_nl address{};
  address.nl_family = AF_NETLINK;
  if (::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    return ErrnoError("bind netlink socket");
  }
  UniqueFd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake) return ErrnoError("eventfd");
  return NetlinkEvents(std::move(fd), std::move(wake));
}

Result<> NetlinkEvents::Listen(int group, bool on) {
  if (::setsockopt(fd_.get(), SOL_NETLINK, on ? NETLINK_ADD_MEMBERSHIP : NETLINK_DROP_MEMBERSHIP, &group,
                   sizeof group) != 0) {
    return ErrnoError(on ? "join netlink group" : "leave netlink group");
  }
  return {};
}

Result<> NetlinkEvents::Wait(std::stop_token stop, std::chrono::milliseconds timeout,
                             const std::function<bool(const nlmsghdr*)>& each) {
  std::stop_callback on_stop(stop, [this] {
    uint64_t one = 1;
    (void)!::write(wake_.get(), &one, sizeof one);
  });
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  for (;;) {
    if (stop.stop_requested()) return Error(Code::kCancelled, "stopped");
    auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) return Error(Code::kTimeout, "no kernel events");
    pollfd polled[] = {{fd_.get(), POLLIN, 0}, {wake_.get(), POLLIN, 0}};
    if (::poll(polled, 2, static_cast<int>(left.count())) < 0 && errno != EINTR) return ErrnoError("poll");
    KEELSON_ASSIGN_OR_RETURN(bool any, Drain(fd_.get(), each));
    if (any) return {};
  }
}

}  // namespace keelson::linux
