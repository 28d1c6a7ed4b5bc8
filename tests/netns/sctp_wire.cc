#include "tests/netns/sctp_wire.h"

#include <netinet/in.h>
#include <netinet/ip.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <random>

#include "lib/base/socket_address.h"

namespace keelson::netns {
namespace {

constexpr uint8_t kInit = 1, kInitAck = 2;
constexpr size_t kCommonHeader = 12, kChunk = 20;  // a chunk's header and the fixed part of INIT
constexpr uint16_t kStateCookie = 7;

void Put16(std::string& out, uint16_t value) {
  out += static_cast<char>(value >> 8);
  out += static_cast<char>(value);
}
void Put32(std::string& out, uint32_t value) {
  Put16(out, static_cast<uint16_t>(value >> 16));
  Put16(out, static_cast<uint16_t>(value));
}
uint16_t Get16(std::string_view bytes, size_t at) {
  return static_cast<uint16_t>(static_cast<uint8_t>(bytes[at]) << 8 | static_cast<uint8_t>(bytes[at + 1]));
}
uint32_t Get32(std::string_view bytes, size_t at) {
  return static_cast<uint32_t>(Get16(bytes, at)) << 16 | Get16(bytes, at + 2);
}

// CRC-32C (RFC 9260, appendix A) of a packet whose checksum counts as zero.
uint32_t Checksum(std::string_view packet) {
  uint32_t crc = ~0u;
  for (size_t i = 0; i < packet.size(); ++i) {
    crc ^= i >= 8 && i < kCommonHeader ? 0 : static_cast<uint8_t>(packet[i]);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0x82F63B78u : 0);
  }
  return ~crc;
}

void Seal(std::string& packet) {
  uint32_t crc = Checksum(packet);
  for (size_t i = 0; i < 4; ++i) packet[8 + i] = static_cast<char>(crc >> 8 * i);  // least byte first
}

bool IsSealed(std::string_view packet) {
  std::string copy(packet);
  Seal(copy);
  return copy == packet;
}

// INIT or INIT ACK.
std::string Packet(uint16_t from, uint16_t to, uint32_t tag, uint8_t type, const std::string& cookie) {
  std::string out;
  Put16(out, from);
  Put16(out, to);
  Put32(out, tag);
  Put32(out, 0);
  const size_t padded = cookie.empty() ? 0 : 4 + (cookie.size() + 3) / 4 * 4;
  out += static_cast<char>(type);
  out += '\0';
  Put16(out, static_cast<uint16_t>(kChunk + padded));
  for (uint32_t word : {0x12345678u, 65536u, 0x00010001u, 1u}) Put32(out, word);  // tag, window, streams, TSN
  if (!cookie.empty()) {
    Put16(out, kStateCookie);
    Put16(out, static_cast<uint16_t>(4 + cookie.size()));
    out += cookie;
    out.resize(kCommonHeader + kChunk + padded);
  }
  Seal(out);
  return out;
}

struct Received {
  std::string packet;  // from the SCTP header on; empty: none of use
  sockaddr_storage from{};
  socklen_t from_size = 0;
  std::string to;  // the address that it was sent to
};

Received Receive(int fd) {
  Received out;
  std::array<char, 2048> bytes;
  alignas(cmsghdr) std::array<char, 128> control;
  iovec data{bytes.data(), bytes.size()};
  msghdr message{};
  message.msg_name = &out.from;
  message.msg_namelen = sizeof out.from;
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  ssize_t got = ::recvmsg(fd, &message, MSG_DONTWAIT);
  if (got <= 0) return out;
  out.from_size = message.msg_namelen;
  std::string_view packet(bytes.data(), static_cast<size_t>(got));
  if (out.from.ss_family == AF_INET) {  // these come with their IP header
    size_t header = static_cast<size_t>(packet[0] & 15) * 4;
    if (packet.size() < header) return out;
    out.to = packet.substr(16, 4);
    packet.remove_prefix(header);
  }
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part; part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != IPPROTO_IPV6 || part->cmsg_type != IPV6_PKTINFO) continue;
    out.to.assign(reinterpret_cast<const char*>(&reinterpret_cast<in6_pktinfo*>(CMSG_DATA(part))->ipi6_addr),
                  16);
  }
  if (packet.size() >= kCommonHeader + kChunk && IsSealed(packet)) out.packet = packet;
  return out;
}

// From `source`: a machine with several addresses would choose another one.
void Reply(int fd, const Received& to, const std::string& packet, const std::string& source) {
  alignas(cmsghdr) std::array<char, 128> control{};
  iovec data{const_cast<char*>(packet.data()), packet.size()};
  msghdr message{};
  message.msg_name = const_cast<sockaddr_storage*>(&to.from);
  message.msg_namelen = to.from_size;
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* part = CMSG_FIRSTHDR(&message);
  if (to.from.ss_family == AF_INET) {
    in_pktinfo info{};
    std::memcpy(&info.ipi_spec_dst, source.data(), 4);
    part->cmsg_level = IPPROTO_IP;
    part->cmsg_type = IP_PKTINFO;
    part->cmsg_len = CMSG_LEN(sizeof info);
    std::memcpy(CMSG_DATA(part), &info, sizeof info);
    message.msg_controllen = CMSG_SPACE(sizeof info);
  } else {
    in6_pktinfo info{};
    std::memcpy(&info.ipi6_addr, source.data(), 16);
    part->cmsg_level = IPPROTO_IPV6;
    part->cmsg_type = IPV6_PKTINFO;
    part->cmsg_len = CMSG_LEN(sizeof info);
    std::memcpy(CMSG_DATA(part), &info, sizeof info);
    message.msg_controllen = CMSG_SPACE(sizeof info);
  }
  (void)::sendmsg(fd, &message, 0);
}

Result<UniqueFd> OpenRaw(int family) {
  UniqueFd fd(::socket(family, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_SCTP));
  if (!fd) return ErrnoError("raw socket");
  int on = 1;
  if (family == AF_INET6) ::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_RECVPKTINFO, &on, sizeof on);
  return fd;
}

// The cookie of an INIT ACK from `from` to `to`; empty: it is something else.
std::string CookieOf(const std::string& packet, uint16_t from, uint16_t to) {
  if (packet.empty() || Get16(packet, 0) != from || Get16(packet, 2) != to) return "";
  const size_t at = kCommonHeader + kChunk;
  if (static_cast<uint8_t>(packet[kCommonHeader]) != kInitAck || packet.size() < at + 4) return "";
  if (Get16(packet, at) != kStateCookie || Get16(packet, at + 2) < 4) return "";
  return packet.substr(at + 4, Get16(packet, at + 2) - 4u);
}

}  // namespace

Result<std::vector<UniqueFd>> OpenRawSctp() {
  std::vector<UniqueFd> out;
  for (int family : {AF_INET, AF_INET6}) {
    KEELSON_ASSIGN_OR_RETURN(UniqueFd fd, OpenRaw(family));
    out.push_back(std::move(fd));
  }
  return out;
}

void AnswerRawSctp(int fd, const std::string& name, uint16_t port) {
  Received got = Receive(fd);
  if (got.packet.empty() || Get16(got.packet, 2) != port) return;
  if (static_cast<uint8_t>(got.packet[kCommonHeader]) != kInit) return;
  std::string cookie = name + " " + AddressOf(got.from).ToString();
  Reply(fd, got, Packet(port, Get16(got.packet, 0), Get32(got.packet, kCommonHeader + 4), kInitAck, cookie),
        got.to);
}

Result<std::string> AskRawSctp(const linux::NetNs& from, const std::optional<IpAddress>& source,
                               const IpAddress& to, uint16_t port, std::chrono::milliseconds limit) {
  static std::mt19937 random(std::random_device{}());
  UniqueFd fd;
  KEELSON_RETURN_IF_ERROR(from.Run([&]() -> Result<> {
    KEELSON_ASSIGN_OR_RETURN(fd, OpenRaw(to.is_v4() ? AF_INET : AF_INET6));
    return {};
  }));
  if (source) {
    const SocketAddress own(*source, 0);
    if (::bind(fd.get(), own.get(), own.size()) != 0) return ErrnoError("bind");
  }
  // Connected sockets report ICMP errors.
  const SocketAddress peer(to, 0);
  if (::connect(fd.get(), peer.get(), peer.size()) != 0) return ErrnoError("connect");
  const auto own_port = static_cast<uint16_t>(20000 + random() % 40000);
  std::string init = Packet(own_port, port, 0, kInit, "");
  if (::send(fd.get(), init.data(), init.size(), 0) < 0) return ErrnoError("send");
  const auto until = std::chrono::steady_clock::now() + limit;
  for (;;) {
    auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    pollfd polled{fd.get(), POLLIN, 0};
    if (left.count() <= 0 || ::poll(&polled, 1, static_cast<int>(left.count())) == 0) {
      return Error::FromErrno(ETIMEDOUT, "receive");
    }
    int error = 0;
    socklen_t size = sizeof error;
    ::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0) return Error::FromErrno(error, "receive");
    std::string cookie = CookieOf(Receive(fd.get()).packet, port, own_port);
    if (!cookie.empty()) return cookie;
  }
}

}  // namespace keelson::netns
