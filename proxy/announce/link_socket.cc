#include "proxy/announce/link_socket.h"

#include <arpa/inet.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace keelson::proxy {
namespace {

constexpr size_t kLargest = 1514;

// All other IPv6 packets of the link stay in the kernel.
Result<> TakeDiscoveryOnly(int fd) {
  std::array<sock_filter, 7> code = {{
      BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 20),          // next header
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 58, 0, 4),   // ICMPv6
      BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 54),          // type
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 135, 1, 0),  // solicitation
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 136, 0, 1),  // advertisement
      BPF_STMT(BPF_RET | BPF_K, kLargest),
      BPF_STMT(BPF_RET | BPF_K, 0),
  }};
  sock_fprog program{.len = code.size(), .filter = code.data()};
  if (::setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) != 0) {
    return ErrnoError("attach a filter for neighbour discovery");
  }
  return {};
}

}  // namespace

Result<LinkSocket> LinkSocket::Open(const netlink::Link& link, bool v4) {
  // Of no protocol until the filter is on: nothing comes before.
  UniqueFd fd(::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const std::string what = "open a packet socket on " + link.name;
  if (!fd) return ErrnoError(what);
  if (!v4) KEELSON_RETURN_IF_ERROR(TakeDiscoveryOnly(fd.get()));
  sockaddr_ll name{};
  name.sll_family = AF_PACKET;
  name.sll_protocol = htons(v4 ? ETH_P_ARP : ETH_P_IPV6);
  name.sll_ifindex = link.index;
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name) != 0) return ErrnoError(what);
  return LinkSocket(std::move(fd), link.index, link.mac);
}

Result<> LinkSocket::Join(const IpAddress& group) {
  const std::string what = "join " + group.ToString();
  if (!member_) member_.Reset(::socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!member_) return ErrnoError(what);
  ipv6_mreq request{};
  std::memcpy(&request.ipv6mr_multiaddr, group.bytes().data(), group.bytes().size());
  request.ipv6mr_interface = static_cast<unsigned>(link_index_);
  if (::setsockopt(member_.get(), IPPROTO_IPV6, IPV6_ADD_MEMBERSHIP, &request, sizeof request) != 0 &&
      errno != EADDRINUSE) {  // addresses that end alike share a group
    return ErrnoError(what);
  }
  return {};
}

Result<std::string> LinkSocket::Receive() {
  std::string frame(kLargest, '\0');
  const ssize_t size = ::recv(fd_.get(), frame.data(), frame.size(), 0);
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return std::string();
  if (size < 0) return ErrnoError("receive a frame");
  frame.resize(static_cast<size_t>(size));
  return frame;
}

Result<> LinkSocket::Send(std::string_view frame) {
  if (::send(fd_.get(), frame.data(), frame.size(), MSG_NOSIGNAL) < 0) return ErrnoError("send a frame");
  return {};
}

}  // namespace keelson::proxy
