#include "lib/netlink/monitor.h"

#include <linux/neighbour.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <cstring>
#include <memory>
#include <optional>

#include "lib/base/ip.h"

namespace keelson::netlink {
namespace {

constexpr size_t kBufferSize = 64 << 10;

// Attribute `type` of a message whose fixed part is a Header.
template <typename Header>
const rtattr* Find(const nlmsghdr* message, int type) {
  auto left = static_cast<int>(message->nlmsg_len) - static_cast<int>(NLMSG_SPACE(sizeof(Header)));
  auto* at = reinterpret_cast<const rtattr*>(reinterpret_cast<const char*>(NLMSG_DATA(message)) +
                                             NLMSG_ALIGN(sizeof(Header)));
  for (; RTA_OK(at, left); at = RTA_NEXT(at, left)) {
    if (at->rta_type == type) return at;
  }
  return nullptr;
}

int Number(const rtattr* attribute, int otherwise) {
  if (!attribute || RTA_PAYLOAD(attribute) < sizeof(uint32_t)) return otherwise;
  uint32_t value;
  std::memcpy(&value, RTA_DATA(attribute), sizeof value);
  return static_cast<int>(value);
}

bool LinkLocal(const rtattr* address) {
  if (!address || (RTA_PAYLOAD(address) != 4 && RTA_PAYLOAD(address) != 16)) return false;
  IpAddress ip = IpAddress::FromBytes({static_cast<const char*>(RTA_DATA(address)), RTA_PAYLOAD(address)});
  return ip.IsLinkLocal() || ip.IsMulticast();
}

std::optional<KernelEvent> Parse(const nlmsghdr* message) {
  KernelEvent event;
  event.author = message->nlmsg_pid;
  event.removed = message->nlmsg_type == RTM_DELLINK || message->nlmsg_type == RTM_DELADDR ||
                  message->nlmsg_type == RTM_DELROUTE || message->nlmsg_type == RTM_DELNEIGH;
  switch (message->nlmsg_type) {
    case RTM_NEWLINK:
    case RTM_DELLINK: {
      event.kind = KernelEvent::Kind::kLink;
      event.link_index = static_cast<const ifinfomsg*>(NLMSG_DATA(message))->ifi_index;
      if (const rtattr* name = Find<ifinfomsg>(message, IFLA_IFNAME)) {
        event.link_name = static_cast<const char*>(RTA_DATA(name));
      }
      return event;
    }
    case RTM_NEWADDR:
    case RTM_DELADDR:
      event.kind = KernelEvent::Kind::kAddress;
      event.link_index = static_cast<int>(static_cast<const ifaddrmsg*>(NLMSG_DATA(message))->ifa_index);
      event.link_local = LinkLocal(Find<ifaddrmsg>(message, IFA_ADDRESS));
      return event;
    case RTM_NEWROUTE:
    case RTM_DELROUTE:
      event.kind = KernelEvent::Kind::kRoute;
      event.link_index = Number(Find<rtmsg>(message, RTA_OIF), 0);
      event.table =
          Number(Find<rtmsg>(message, RTA_TABLE), static_cast<const rtmsg*>(NLMSG_DATA(message))->rtm_table);
      event.link_local = LinkLocal(Find<rtmsg>(message, RTA_DST));
      return event;
    case RTM_NEWNEIGH:
    case RTM_DELNEIGH:
      event.kind = KernelEvent::Kind::kNeighbor;
      event.link_index = static_cast<const ndmsg*>(NLMSG_DATA(message))->ndm_ifindex;
      return event;
    default:
      return std::nullopt;
  }
}

// Everything that waits; kLost in place of what did not fit.
Result<> Drain(int fd, std::vector<KernelEvent>& out) {
  // On the heap: every thread of the program has a copy of what is thread_local itself.
  static thread_local const auto buffer = std::make_unique<char[]>(kBufferSize);
  for (;;) {
    ssize_t got = ::recv(fd, buffer.get(), kBufferSize, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return {};
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == ENOBUFS) {
      out.push_back({});
      continue;
    }
    if (got < 0) return ErrnoError("receive kernel events");
    auto left = static_cast<unsigned>(got);
    for (auto* message = reinterpret_cast<nlmsghdr*>(buffer.get()); NLMSG_OK(message, left);
         message = NLMSG_NEXT(message, left)) {
      if (auto event = Parse(message)) out.push_back(std::move(*event));
    }
  }
}

}  // namespace

Result<Monitor> Monitor::Open() {
  UniqueFd fd(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE));
  if (!fd) return ErrnoError("open netlink socket");
  sockaddr_nl address{};
  address.nl_family = AF_NETLINK;
  if (::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    return ErrnoError("bind netlink socket");
  }
  for (int group : {RTNLGRP_LINK, RTNLGRP_IPV4_IFADDR, RTNLGRP_IPV6_IFADDR, RTNLGRP_IPV4_ROUTE,
                    RTNLGRP_IPV6_ROUTE, RTNLGRP_NEIGH}) {
    if (::setsockopt(fd.get(), SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &group, sizeof group) != 0) {
      return ErrnoError("join netlink group");
    }
  }
  UniqueFd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake) return ErrnoError("eventfd");
  return Monitor(std::move(fd), std::move(wake));
}

Result<std::vector<KernelEvent>> Monitor::Wait(std::stop_token stop, std::chrono::milliseconds timeout) {
  std::stop_callback on_stop(stop, [this] {
    uint64_t one = 1;
    (void)!::write(wake_.get(), &one, sizeof one);
  });
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  std::vector<KernelEvent> events;
  for (;;) {
    if (stop.stop_requested()) return Error(Code::kCancelled, "stopped");
    auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) return Error(Code::kTimeout, "no kernel events");
    pollfd polled[] = {{fd_.get(), POLLIN, 0}, {wake_.get(), POLLIN, 0}};
    if (::poll(polled, 2, static_cast<int>(left.count())) < 0 && errno != EINTR) return ErrnoError("poll");
    RETURN_IF_ERROR(Drain(fd_.get(), events));
    if (!events.empty()) return events;
  }
}

}  // namespace keelson::netlink
