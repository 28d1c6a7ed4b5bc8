#include "tests/policies/stream.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <cstdlib>

#include "lib/base/socket_address.h"

namespace keelson::policies {
namespace {

uint16_t NextPort() {
  static std::atomic<uint16_t> last{9000};
  return ++last;
}

UniqueFd Open(const linux::NetNs& netns, bool v4) {
  UniqueFd out;
  Result<> opened = netns.Run([&]() -> Result<> {
    out.Reset(::socket(v4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    return out ? Result<>() : ErrnoError("socket");
  });
  if (!opened) std::abort();
  return out;
}

// Between datagrams; also until more come.
void Pause(int fd) {
  pollfd polled{fd, POLLIN, 0};
  const timespec pause{.tv_nsec = 300'000};
  (void)::ppoll(&polled, fd < 0 ? 0 : 1, &pause, nullptr);
}

}  // namespace

Stream::Stream(const linux::NetNs& from, const linux::NetNs& to, const IpAddress& address)
    : out_(Open(from, address.is_v4())), in_(Open(to, address.is_v4())) {
  const SocketAddress target(address, NextPort());
  if (::bind(in_.get(), target.get(), target.size()) != 0) std::abort();
  if (::connect(out_.get(), target.get(), target.size()) != 0) std::abort();
  receiver_ = std::jthread([this](std::stop_token stop) { Receive(std::move(stop)); });
  sender_ = std::jthread([this](std::stop_token stop) { Send(std::move(stop)); });
}

Stream::~Stream() {
  sender_.request_stop();
  sender_.join();
  receiver_.request_stop();
  receiver_.join();
}

void Stream::Send(std::stop_token stop) {
  while (!stop.stop_requested()) {
    const char mark = static_cast<char>(mark_.load());
    (void)::send(out_.get(), &mark, 1, MSG_NOSIGNAL);  // what the node itself drops is an error here
    ++sent_;
    Pause(-1);
  }
}

void Stream::Receive(std::stop_token stop) {
  while (!stop.stop_requested()) {
    Pause(in_.get());
    char mark = 0;
    while (::recv(in_.get(), &mark, 1, MSG_DONTWAIT) == 1) ++arrived_.at(static_cast<uint8_t>(mark) % 4);
  }
}

void Stream::AwaitSent(uint64_t more) const {
  const uint64_t target = sent_ + more;
  while (sent_ < target) Pause(-1);
}

}  // namespace keelson::policies
