#include "proxy/dns/udp_server.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "lib/base/socket_address.h"

namespace keelson::proxy::dns {
namespace {

constexpr unsigned kBatch = 32;
constexpr size_t kPacketSize = 1500;     // no question is larger
constexpr int kRoundsAtOnce = 8;         // before the other sockets have their turn
constexpr int kReceiveBuffer = 4 << 20;  // bursts, while the thread is busy

class UdpAsker : public Asker {
 public:
  UdpAsker(const std::shared_ptr<UniqueFd>& socket, const sockaddr_storage& from, socklen_t size)
      : socket_(socket), from_(from), size_(size) {}
  bool tcp() const override { return false; }
  bool v4() const override { return from_.ss_family == AF_INET; }
  IpAddress source() const override { return AddressOf(from_); }
  std::function<void(std::string_view)> Later() override {
    return [socket = socket_, from = from_, size = size_](std::string_view answer) {
      // One that cannot be sent is lost, as packets are; the client asks again.
      ::sendto(socket->get(), answer.data(), answer.size(), MSG_DONTWAIT | MSG_NOSIGNAL,
               reinterpret_cast<const sockaddr*>(&from), size);
    };
  }

 private:
  const std::shared_ptr<UniqueFd>& socket_;
  const sockaddr_storage& from_;
  socklen_t size_;
};

}  // namespace

struct UdpServer::Batch {
  std::array<mmsghdr, kBatch> in{}, out{};
  std::array<iovec, kBatch> in_data{}, out_data{};
  std::array<sockaddr_storage, kBatch> from{};
  std::array<std::array<char, kPacketSize>, kBatch> packets;
  std::array<std::array<char, kMaxUdpSize>, kBatch> answers;

  Batch() {
    for (unsigned i = 0; i < kBatch; ++i) {
      in_data[i] = {packets[i].data(), packets[i].size()};
      in[i].msg_hdr.msg_iov = &in_data[i];
      in[i].msg_hdr.msg_iovlen = 1;
      in[i].msg_hdr.msg_name = &from[i];
      out[i].msg_hdr.msg_iov = &out_data[i];
      out[i].msg_hdr.msg_iovlen = 1;
    }
  }
};

Result<UniqueFd> BindSocket(const Listen& address, int type) {
  int family = address.ip.is_v4() ? AF_INET : AF_INET6;
  UniqueFd fd(::socket(family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  std::string what = "listen on " + address.ip.ToString() + " port " + std::to_string(address.port);
  if (!fd) return ErrnoError(what);
  const int on = 1;
  // Of UDP it would let two servers share the port, and questions be lost to the other one.
  if (type == SOCK_STREAM) ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (family == AF_INET) {
    ::setsockopt(fd.get(), IPPROTO_IP, IP_FREEBIND, &on, sizeof on);
  } else {
    ::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_FREEBIND, &on, sizeof on);
    ::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
  }
  SocketAddress name(address.ip, address.port);
  if (::bind(fd.get(), name.get(), name.size()) != 0) return ErrnoError(what);
  return fd;
}

Result<uint16_t> LocalPort(int fd) {
  sockaddr_storage name{};
  socklen_t size = sizeof name;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&name), &size) != 0) return ErrnoError("get socket name");
  return ntohs(name.ss_family == AF_INET ? reinterpret_cast<sockaddr_in*>(&name)->sin_port
                                         : reinterpret_cast<sockaddr_in6*>(&name)->sin6_port);
}

Result<std::unique_ptr<UdpServer>> UdpServer::Create(const std::vector<Listen>& addresses,
                                                     Responder& responder) {
  std::unique_ptr<UdpServer> out(new UdpServer(responder));
  for (const Listen& address : addresses) {
    KEELSON_ASSIGN_OR_RETURN(UniqueFd fd, BindSocket(address, SOCK_DGRAM));
    ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVBUF, &kReceiveBuffer, sizeof kReceiveBuffer);
    out->sockets_.push_back(std::make_shared<UniqueFd>(std::move(fd)));
  }
  out->wake_.Reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!out->wake_) return ErrnoError("create eventfd");
  return out;
}

std::vector<uint16_t> UdpServer::ports() const {
  std::vector<uint16_t> out;
  for (const auto& socket : sockets_) out.push_back(LocalPort(socket->get()).value_or(0));
  return out;
}

Result<> UdpServer::Run(std::stop_token stop) {
  std::stop_callback wake(stop, [this] {
    uint64_t one = 1;
    [[maybe_unused]] ssize_t written = ::write(wake_.get(), &one, sizeof one);
  });
  std::vector<pollfd> polled;
  for (const auto& socket : sockets_) polled.push_back({socket->get(), POLLIN, 0});
  polled.push_back({wake_.get(), POLLIN, 0});
  auto batch = std::make_unique<Batch>();
  while (!stop.stop_requested()) {
    if (::poll(polled.data(), polled.size(), -1) < 0 && errno != EINTR) return ErrnoError("poll DNS sockets");
    for (size_t i = 0; i < sockets_.size(); ++i) {
      for (int round = 0; round < kRoundsAtOnce && Serve(sockets_[i], *batch); ++round) {
      }
    }
  }
  return {};
}

bool UdpServer::Serve(const std::shared_ptr<UniqueFd>& socket, Batch& batch) {
  for (unsigned i = 0; i < kBatch; ++i) batch.in[i].msg_hdr.msg_namelen = sizeof(sockaddr_storage);
  // An error here is one that an earlier packet met; the next call goes on.
  int received = ::recvmmsg(socket->get(), batch.in.data(), kBatch, MSG_DONTWAIT, nullptr);
  if (received <= 0) return false;
  unsigned answers = 0;
  for (unsigned i = 0; i < static_cast<unsigned>(received); ++i) {
    msghdr& from = batch.in[i].msg_hdr;
    if (from.msg_flags & MSG_TRUNC) continue;
    UdpAsker asker(socket, batch.from[i], from.msg_namelen);
    size_t size =
        responder_.Handle({batch.packets[i].data(), batch.in[i].msg_len}, asker, batch.answers[answers]);
    if (size == 0) continue;
    batch.out_data[answers] = {batch.answers[answers].data(), size};
    batch.out[answers].msg_hdr.msg_name = from.msg_name;
    batch.out[answers].msg_hdr.msg_namelen = from.msg_namelen;
    ++answers;
  }
  Send(socket->get(), batch, answers);
  return static_cast<unsigned>(received) == kBatch;
}

// Answers that the kernel does not take are lost, as packets are.
void UdpServer::Send(int fd, Batch& batch, unsigned count) {
  for (unsigned sent = 0; sent < count;) {
    int now = ::sendmmsg(fd, batch.out.data() + sent, count - sent, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (now < 0 && errno == EINTR) continue;
    if (now < 0 && errno == EAGAIN) return;
    sent += now > 0 ? static_cast<unsigned>(now) : 1;
  }
}

}  // namespace keelson::proxy::dns
