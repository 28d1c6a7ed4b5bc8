#include "tests/netns/wire.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdlib>

#include "lib/base/file.h"
#include "lib/base/socket_address.h"
#include "tests/netns/sctp_wire.h"

namespace keelson::netns {
namespace {

constexpr uint8_t kTcp = 6, kUdp = 17, kSctp = 132;

int TypeOf(uint8_t protocol) { return protocol == kUdp ? SOCK_DGRAM : SOCK_STREAM; }

Result<UniqueFd> OpenEverywhere(uint8_t protocol, uint16_t port) {
  UniqueFd fd(::socket(AF_INET6, TypeOf(protocol) | SOCK_CLOEXEC, protocol));
  if (!fd) return ErrnoError("socket");
  int on = 1, off = 0;
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  ::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  if (protocol == kUdp) ::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_RECVPKTINFO, &on, sizeof on);
  SocketAddress any(*IpAddress::Parse("::"), port);
  if (::bind(fd.get(), any.get(), any.size()) != 0) return ErrnoError("bind");
  if (protocol != kUdp && ::listen(fd.get(), 1024) != 0) return ErrnoError("listen");
  return fd;
}

Result<Answer> ParseGreeting(const std::string& text) {
  auto space = text.find(' ');
  if (space == std::string::npos) return Error(Code::kUnavailable, "no greeting");
  return Answer{text.substr(0, space), text.substr(space + 1)};
}

Result<UniqueFd> Dial(const linux::NetNs& from, const Question& q) {
  UniqueFd fd;
  KEELSON_RETURN_IF_ERROR(from.Run([&]() -> Result<> {
    fd.Reset(::socket(q.to.is_v4() ? AF_INET : AF_INET6, TypeOf(q.protocol) | SOCK_CLOEXEC, q.protocol));
    if (!fd) return ErrnoError("socket");
    return {};
  }));
  timeval time{.tv_sec = q.limit.count() / 1000, .tv_usec = q.limit.count() % 1000 * 1000};
  ::setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &time, sizeof time);
  ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time);
  if (q.source) {
    const SocketAddress source(*q.source, 0);
    if (::bind(fd.get(), source.get(), source.size()) != 0) return ErrnoError("bind");
  }
  const SocketAddress to(q.to, q.port);
  if (::connect(fd.get(), to.get(), to.size()) != 0) {
    return Error::FromErrno(errno == EINPROGRESS || errno == EAGAIN ? ETIMEDOUT : errno, "connect");
  }
  if (q.protocol == kUdp && ::send(fd.get(), "who", 3, 0) != 3) return ErrnoError("send");
  return fd;
}

// Nothing comes behind it that has not been asked for.
Result<Answer> ReadGreeting(int fd) {
  char buffer[128];
  std::string text;
  while (text.find('\n') == std::string::npos) {
    ssize_t got = ::recv(fd, buffer, sizeof buffer, 0);
    if (got < 0) return Error::FromErrno(errno == EAGAIN ? ETIMEDOUT : errno, "receive");
    if (got == 0) break;
    text.append(buffer, static_cast<size_t>(got));
  }
  if (!text.empty() && text.back() == '\n') text.pop_back();
  return ParseGreeting(text);
}

}  // namespace

bool Speaks(uint8_t protocol) {
  if (protocol != kSctp) return true;
  Result<std::string> loaded = ReadFile("/proc/net/protocols");
  return !loaded || loaded->find("\nSCTP") == std::string::npos;
}

Responder::Responder(std::string name, const linux::NetNs& netns, uint16_t port)
    : name_(std::move(name)), port_(port), epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
  Result<> ready = netns.Run([&]() -> Result<> {
    KEELSON_ASSIGN_OR_RETURN(datagrams_, OpenEverywhere(kUdp, port));
    KEELSON_ASSIGN_OR_RETURN(listener_, OpenEverywhere(kTcp, port));
    if (Speaks(kSctp)) {
      KEELSON_ASSIGN_OR_RETURN(raw_, OpenRawSctp());
    }
    return {};
  });
  if (!ready) std::abort();
  Watch(datagrams_);
  Watch(listener_);
  for (const UniqueFd& raw : raw_) Watch(raw);
  thread_ = std::jthread([this](std::stop_token stop) { Serve(stop); });
}

Responder::~Responder() {
  thread_.request_stop();
  thread_.join();
}

// The cost is independent of the number of peers: a thousand of them send to an emulated machine.
void Responder::Watch(const UniqueFd& fd) {
  epoll_event event{.events = EPOLLIN, .data = {.fd = fd.get()}};
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd.get(), &event) != 0) std::abort();
}

void Responder::Accept() {
  SocketAddress from;
  UniqueFd peer(::accept4(listener_.get(), from.get(), from.filled(), SOCK_CLOEXEC));
  if (!peer) return;
  std::string greeting = name_ + " " + from.UnmappedIp().ToString() + "\n";
  (void)::send(peer.get(), greeting.data(), greeting.size(), MSG_NOSIGNAL);
  Watch(peer);
  const int fd = peer.get();
  peers_.insert_or_assign(fd, std::move(peer));
}

// From the address that was asked: a machine with several would choose another one.
void Responder::AnswerDatagram(int fd) const {
  char buffer[64];
  alignas(cmsghdr) char control[128];
  SocketAddress from;
  iovec data{buffer, sizeof buffer};
  msghdr message{};
  message.msg_name = from.get();
  message.msg_namelen = from.size();
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  if (::recvmsg(fd, &message, 0) < 0) return;
  std::string greeting = name_ + " " + from.UnmappedIp().ToString() + "\n";
  data = {greeting.data(), greeting.size()};
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part; part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != IPPROTO_IPV6 || part->cmsg_type != IPV6_PKTINFO) continue;
    reinterpret_cast<in6_pktinfo*>(CMSG_DATA(part))->ipi6_ifindex = 0;  // the routes decide
  }
  (void)::sendmsg(fd, &message, 0);
}

void Responder::Echo(int fd) {
  char buffer[256];
  const ssize_t got = ::recv(fd, buffer, sizeof buffer, MSG_DONTWAIT);
  if (got > 0) {
    (void)::send(fd, buffer, static_cast<size_t>(got), MSG_NOSIGNAL);
  } else {
    peers_.erase(fd);
  }
}

void Responder::Serve(std::stop_token stop) {
  epoll_event ready[64];
  while (!stop.stop_requested()) {
    const int count = ::epoll_wait(epoll_.get(), ready, std::size(ready), 20);
    for (int i = 0; i < count; ++i) {
      const int fd = ready[i].data.fd;
      auto is = [&](const UniqueFd& one) { return one.get() == fd; };
      if (is(datagrams_)) {
        AnswerDatagram(fd);
      } else if (is(listener_)) {
        Accept();
      } else if (std::any_of(raw_.begin(), raw_.end(), is)) {
        AnswerRawSctp(fd, name_, port_);
      } else {
        Echo(fd);
      }
    }
  }
}

Result<Answer> Ask(const linux::NetNs& from, const Question& question) {
  if (question.protocol == kSctp) {
    KEELSON_ASSIGN_OR_RETURN(std::string greeting,
                             AskRawSctp(from, question.source, question.to, question.port, question.limit));
    return ParseGreeting(greeting);
  }
  KEELSON_ASSIGN_OR_RETURN(UniqueFd fd, Dial(from, question));
  return ReadGreeting(fd.get());
}

Result<Conversation> Conversation::Open(const linux::NetNs& from, const Question& question) {
  Conversation out;
  KEELSON_ASSIGN_OR_RETURN(out.fd_, Dial(from, question));
  KEELSON_ASSIGN_OR_RETURN(out.answer_, ReadGreeting(out.fd_.get()));
  const timeval long_enough{.tv_sec = 20};  // for an emulated machine that stands still for a while
  ::setsockopt(out.fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &long_enough, sizeof long_enough);
  return out;
}

bool Conversation::Says() { return ::send(fd_.get(), "ping", 4, MSG_NOSIGNAL) == 4; }

bool Conversation::Hears() {
  char buffer[8] = {};
  return ::recv(fd_.get(), buffer, 4, MSG_WAITALL) == 4 && std::string_view(buffer, 4) == "ping";
}

void Conversation::Vanish() {
  const int repair = 1;  // TCP_REPAIR: such a socket is closed in silence
  ::setsockopt(fd_.get(), IPPROTO_TCP, TCP_REPAIR, &repair, sizeof repair);
  fd_ = UniqueFd();
}

void Conversation::Reset() {
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  ::setsockopt(fd_.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  fd_ = UniqueFd();
}

}  // namespace keelson::netns
