#include "lib/nft/monitor.h"

#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "lib/nft/attributes_internal.h"

namespace keelson::nft {
namespace {

constexpr size_t kBufferSize = 64 << 10;

void Note(const nlmsghdr* message, std::vector<TableChange>& out) {
  if (NFNL_SUBSYS_ID(message->nlmsg_type) != NFNL_SUBSYS_NFTABLES ||
      NFNL_MSG_TYPE(message->nlmsg_type) == NFT_MSG_NEWGEN ||
      message->nlmsg_len < NLMSG_SPACE(sizeof(nfgenmsg))) {
    return;
  }
  auto* header = static_cast<const nfgenmsg*>(mnl_nlmsg_get_payload(message));
  TableChange change{.family = static_cast<Family>(header->nfgen_family), .author = message->nlmsg_pid};
  // Attribute 1 names the table in messages about every kind of object.
  ForEachAttribute(message, sizeof(nfgenmsg), [&](const nlattr* attribute) {
    if (mnl_attr_get_type(attribute) == NFTA_TABLE_NAME && mnl_attr_get_payload_len(attribute) > 0) {
      auto* text = static_cast<const char*>(mnl_attr_get_payload(attribute));
      change.table.assign(text, ::strnlen(text, mnl_attr_get_payload_len(attribute)));
    }
  });
  if (out.empty() || !(out.back() == change)) {
    if (std::find(out.begin(), out.end(), change) == out.end()) out.push_back(std::move(change));
  }
}

Result<> Drain(int fd, Monitor::Changes& out) {
  // On the heap: every thread of the program has a copy of what is thread_local itself.
  static thread_local const auto buffer = std::make_unique<char[]>(kBufferSize);
  for (;;) {
    ssize_t got = ::recv(fd, buffer.get(), kBufferSize, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return {};
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == ENOBUFS) {
      out.lost = true;
      continue;
    }
    if (got < 0) return ErrnoError("receive netfilter events");
    int left = static_cast<int>(got);
    for (auto* message = reinterpret_cast<const nlmsghdr*>(buffer.get()); mnl_nlmsg_ok(message, left);
         message = mnl_nlmsg_next(message, &left)) {
      Note(message, out.tables);
    }
  }
}

}  // namespace

Result<Monitor> Monitor::Open() {
  UniqueFd fd(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_NETFILTER));
  if (!fd) return ErrnoError("open netfilter socket");
  sockaddr_nl address{};
  address.nl_family = AF_NETLINK;
  if (::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    return ErrnoError("bind netfilter socket");
  }
  UniqueFd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake) return ErrnoError("eventfd");
  Monitor out(std::move(fd), std::move(wake));
  RETURN_IF_ERROR(out.Listen(true));
  return out;
}

Result<> Monitor::Listen(bool on) {
  int group = NFNLGRP_NFTABLES;
  if (::setsockopt(fd_.get(), SOL_NETLINK, on ? NETLINK_ADD_MEMBERSHIP : NETLINK_DROP_MEMBERSHIP, &group,
                   sizeof group) != 0) {
    return ErrnoError(on ? "join netfilter group" : "leave netfilter group");
  }
  return {};
}

Result<Monitor::Changes> Monitor::Wait(std::stop_token stop, std::chrono::milliseconds timeout) {
  std::stop_callback on_stop(stop, [this] {
    uint64_t one = 1;
    (void)!::write(wake_.get(), &one, sizeof one);
  });
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  Changes changes;
  for (;;) {
    if (stop.stop_requested()) return Error(Code::kCancelled, "stopped");
    auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) return Error(Code::kTimeout, "no netfilter events");
    pollfd polled[] = {{fd_.get(), POLLIN, 0}, {wake_.get(), POLLIN, 0}};
    if (::poll(polled, 2, static_cast<int>(left.count())) < 0 && errno != EINTR) return ErrnoError("poll");
    RETURN_IF_ERROR(Drain(fd_.get(), changes));
    if (changes.lost || !changes.tables.empty()) return changes;
  }
}

}  // namespace keelson::nft
