#include "cni/agent/policy/gate.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstring>

#include "lib/dataplane/policy_sets.h"

namespace keelson::cni::agent {
namespace {

constexpr size_t kMostWaiters = 1024, kLongestRequest = 512;

bool FromRoot(int connection) {
  ucred peer{};
  socklen_t length = sizeof peer;
  return ::getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && peer.uid == 0;
}

// "EPOCH ADDRESS ADDRESS..."
bool Parse(std::string_view text, uint32_t& epoch, std::vector<IpAddress>& addresses) {
  size_t end = std::min(text.find(' '), text.size());
  auto [rest, error] = std::from_chars(text.data(), text.data() + end, epoch);
  if (error != std::errc() || rest != text.data() + end) return false;
  while (end < text.size()) {
    text.remove_prefix(end + 1);
    end = std::min(text.find(' '), text.size());
    Result<IpAddress> address = IpAddress::Parse(text.substr(0, end));
    if (!address) return false;
    addresses.push_back(*address);
  }
  return !addresses.empty();
}

}  // namespace

Result<std::unique_ptr<PolicyGate>> PolicyGate::Open(Agent agent) {
  UniqueFd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  UniqueFd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!listener || !wake) return ErrnoError("open the socket for CNI plugins");
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  constexpr size_t kLength = sizeof dataplane::kPolicySocket - 1;
  std::memcpy(address.sun_path + 1, dataplane::kPolicySocket, kLength);
  auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + kLength);
  if (::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), size) != 0) {
    if (errno == EADDRINUSE) {
      return Error(Code::kAlreadyExists, "another kube-cni serves this node's CNI plugins");
    }
    return ErrnoError("bind the socket for CNI plugins");
  }
  if (::listen(listener.get(), SOMAXCONN) != 0) return ErrnoError("listen for CNI plugins");
  return std::unique_ptr<PolicyGate>(new PolicyGate(std::move(agent), std::move(listener), std::move(wake)));
}

void PolicyGate::Wake() {
  uint64_t one = 1;
  (void)!::write(wake_.get(), &one, sizeof one);
}

void PolicyGate::Accept() {
  for (;;) {
    UniqueFd connection(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!connection) return;
    if (!FromRoot(connection.get()) || waiters_.size() >= kMostWaiters) continue;
    waiters_.push_back({.connection = std::move(connection), .request = {}, .addresses = {}});
  }
}

bool PolicyGate::Receive(Waiter& waiter) {
  char buffer[256];
  ssize_t got = ::recv(waiter.connection.get(), buffer, sizeof buffer, 0);
  if (got < 0) return errno == EAGAIN || errno == EINTR;
  // A plugin says one thing, and hangs up when it gives up.
  if (got == 0 || waiter.complete) return false;
  waiter.request.append(buffer, static_cast<size_t>(got));
  size_t end = waiter.request.find('\n');
  if (end == std::string::npos) return waiter.request.size() < kLongestRequest;
  if (!Parse(std::string_view(waiter.request).substr(0, end), waiter.epoch, waiter.addresses)) return false;
  waiter.complete = true;
  agent_.requested();
  return true;
}

bool PolicyGate::Answer(Waiter& waiter) {
  if (!waiter.complete) return false;
  for (const IpAddress& address : waiter.addresses) {
    if (!agent_.is_ready(address, waiter.epoch)) return false;
  }
  (void)!::send(waiter.connection.get(), "ok\n", 3, MSG_NOSIGNAL);
  return true;
}

Result<> PolicyGate::Run(std::stop_token stop) {
  std::stop_callback on_stop(stop, [this] { Wake(); });
  while (!stop.stop_requested()) {
    std::vector<pollfd> polled = {{listener_.get(), POLLIN, 0}, {wake_.get(), POLLIN, 0}};
    for (const Waiter& waiter : waiters_) polled.push_back({waiter.connection.get(), POLLIN, 0});
    if (::poll(polled.data(), polled.size(), -1) < 0 && errno != EINTR) return ErrnoError("poll");
    uint64_t count = 0;
    (void)!::read(wake_.get(), &count, sizeof count);
    std::vector<Waiter> left;
    for (size_t i = 0; i < waiters_.size(); ++i) {
      bool stays = polled[i + 2].revents == 0 || Receive(waiters_[i]);
      if (stays && !Answer(waiters_[i])) left.push_back(std::move(waiters_[i]));
    }
    waiters_ = std::move(left);
    Accept();
  }
  return {};
}

}  // namespace keelson::cni::agent
