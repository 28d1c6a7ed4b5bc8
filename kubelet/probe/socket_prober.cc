#include "kubelet/probe/socket_prober.h"

#include <arpa/inet.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <limits>
#include <utility>

#include "lib/http/http1_parser.h"

namespace keelson::kubelet {

namespace {

constexpr size_t kMaxBody = 10 << 10;  // more of a body tells nothing more

// As Go prints errno.
std::string Lower(int error) {
  std::string text = std::strerror(error);
  text[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
  return text;
}

Error DialError(const std::string& name, int error) {
  return Error(Code::kUnavailable,
               "dial tcp " + name + ": " + (error == ETIMEDOUT ? "i/o timeout" : "connect: " + Lower(error)),
               error);
}

}  // namespace

SocketAddress SocketAddress::Of(const std::string& host, int port) {
  SocketAddress address;
  auto* v4 = reinterpret_cast<sockaddr_in*>(&address.storage);
  auto* v6 = reinterpret_cast<sockaddr_in6*>(&address.storage);
  if (::inet_pton(AF_INET, host.c_str(), &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    v4->sin_port = htons(static_cast<uint16_t>(port));
    address.size = sizeof(*v4);
  } else if (::inet_pton(AF_INET6, host.c_str(), &v6->sin6_addr) == 1) {
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(static_cast<uint16_t>(port));
    address.size = sizeof(*v6);
  }
  return address;
}

SocketAddress SocketAddress::Of(const sockaddr& address, socklen_t size) {
  SocketAddress copy;
  copy.size = std::min<socklen_t>(size, sizeof(copy.storage));
  std::memcpy(&copy.storage, &address, copy.size);
  return copy;
}

// One probe from its socket to its answer. Its holder uses it exclusively.
struct SocketProber::Exchange {
  Exchange(std::shared_ptr<const Question> asked, Time until, Done told)
      : deadline(until), question_(std::move(asked)), done_(std::move(told)) {}

  enum class State { kGoesOn, kEnded };

  // Goes on until the peer has to be waited for; `events` says for what. Answers when it has ended.
  State Advance(uint32_t& events) {
    if (!connected && !Connect(events)) return ended ? State::kEnded : State::kGoesOn;
    if (question_->request.empty()) return Finish(Answer());
    if (!parser && !Send(events)) return ended ? State::kEnded : State::kGoesOn;
    events = EPOLLIN;
    return Receive();
  }

  State Finish(Result<Answer> answer) {
    ended = true;
    fd.Reset();
    done_(std::move(answer));
    return State::kEnded;
  }
  void Expired() {
    if (!connected) {
      Finish(DialError(question_->name, ETIMEDOUT));
    } else {
      Finish(Error(Code::kTimeout,
                   "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"));
    }
  }

  const Time deadline;
  UniqueFd fd;
  bool ended = false;

 private:
  bool Connect(uint32_t& events) {
    const auto* address = reinterpret_cast<const sockaddr*>(&question_->address.storage);
    if (!fd) fd.Reset(::socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!fd) return Finish(ErrnoError("socket")), false;
    // To a peer on this machine the first call brings the connection about, and the second one says so.
    for (int i = 0; i < 2 && !connected; ++i) {
      connected = ::connect(fd.get(), address, question_->address.size) == 0 || errno == EISCONN;
      if (!connected && errno != EINPROGRESS && errno != EALREADY && errno != EINTR) {
        return Finish(DialError(question_->name, errno)), false;
      }
    }
    if (!connected) events = EPOLLOUT;
    return connected;
  }

  bool Send(uint32_t& events) {
    while (sent < question_->request.size()) {
      const ssize_t size =
          ::send(fd.get(), question_->request.data() + sent, question_->request.size() - sent, MSG_NOSIGNAL);
      if (size < 0 && errno == EINTR) continue;
      if (size < 0 && errno == EAGAIN) {
        events = EPOLLOUT;
        return false;
      }
      if (size < 0) {
        return Finish(Error(Code::kUnavailable, "write tcp " + question_->name + ": write: " + Lower(errno))),
               false;
      }
      sent += static_cast<size_t>(size);
    }
    parser = std::make_unique<http::Http1Parser>(
        http::Http1Parser::Role::kResponse, http::Http1Parser::Limits{},
        [this](std::string_view piece) { body.append(piece.substr(0, kMaxBody - body.size())); });
    return true;
  }

  State Receive() {
    std::array<char, 16 << 10> buffer;
    while (true) {
      const ssize_t size = ::recv(fd.get(), buffer.data(), buffer.size(), 0);
      if (size < 0 && errno == EINTR) continue;
      if (size < 0 && errno == EAGAIN) return State::kGoesOn;
      if (size < 0) {
        return Finish(Error(Code::kUnavailable, "read tcp " + question_->name + ": read: " + Lower(errno)));
      }
      if (size == 0) return Closed();
      unread.append(buffer.data(), static_cast<size_t>(size));
      auto used = parser->Feed(unread);
      if (!used) {
        return Finish(Error(Code::kUnavailable, "malformed HTTP response: " + used.error().message()));
      }
      unread.erase(0, *used);
      if (parser->done() || body.size() == kMaxBody) return Finish(Heard());
    }
  }
  State Closed() {
    if (!parser->started() && unread.empty()) return Finish(Error(Code::kUnavailable, "EOF"));
    if (!parser->head_done() || !parser->End()) return Finish(Error(Code::kUnavailable, "unexpected EOF"));
    return Finish(Heard());
  }
  Answer Heard() {
    const http::MessageHead& head = parser->head();
    return {head.status, std::string(head.headers.Get("Location")), std::move(body)};
  }

  const std::shared_ptr<const Question> question_;
  const Done done_;
  bool connected = false;
  size_t sent = 0;
  std::unique_ptr<http::Http1Parser> parser;
  std::string unread, body;
};

SocketProber::SocketProber()
    : epoll_(::epoll_create1(EPOLL_CLOEXEC)), wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

SocketProber::~SocketProber() = default;

void SocketProber::Ask(std::shared_ptr<const Question> question, Time deadline, Done done) {
  auto exchange = std::make_unique<Exchange>(std::move(question), deadline, std::move(done));
  {
    MutexLock lock(mutex_);
    if (!ended_) {
      asked_.push_back(std::move(exchange));
      if (std::exchange(asleep_, false)) ::eventfd_write(wake_.get(), 1);
      return;
    }
  }
  exchange->Finish(Error(Code::kCancelled, "context canceled"));
}

SocketProber::Exchanges SocketProber::TakeAsked() {
  MutexLock lock(mutex_);
  return std::exchange(asked_, {});
}

void SocketProber::Advance(std::unique_ptr<Exchange> exchange) {
  uint32_t events = 0;
  if (exchange->Advance(events) == Exchange::State::kEnded) return;
  const int fd = exchange->fd.get();
  epoll_event event = {events | EPOLLONESHOT, {.fd = fd}};
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event);  // it has waited before
  }
  waiting_[fd] = std::move(exchange);
}

void SocketProber::Ready(int fd) {
  if (auto found = waiting_.extract(fd)) Advance(std::move(found.mapped()));
}

void SocketProber::Expire(Time now) {
  for (auto it = waiting_.begin(); it != waiting_.end();) {
    const auto at = it++;
    if (at->second->deadline <= now) waiting_.extract(at).mapped()->Expired();
  }
}

void SocketProber::Wait() {
  auto next = Time::max();
  for (const auto& [fd, exchange] : waiting_) next = std::min(next, exchange->deadline);
  int timeout = -1;
  if (next != Time::max()) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(next - std::chrono::steady_clock::now());
    timeout = static_cast<int>(std::clamp<int64_t>(left.count(), 0, std::numeric_limits<int>::max()));
  }
  {
    MutexLock lock(mutex_);
    asleep_ = asked_.empty();
    if (!asleep_) timeout = 0;
  }
  std::array<epoll_event, 64> events;
  const int count = ::epoll_wait(epoll_.get(), events.data(), events.size(), timeout);
  {
    MutexLock lock(mutex_);
    asleep_ = false;
  }
  for (int i = 0; i < count; ++i) {
    eventfd_t ignored;
    if (events[i].data.fd == wake_.get()) {
      ::eventfd_read(wake_.get(), &ignored);
    } else {
      Ready(events[i].data.fd);
    }
  }
}

Result<> SocketProber::Run(std::stop_token stop) {
  epoll_event woken = {EPOLLIN, {.fd = wake_.get()}};
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, wake_.get(), &woken) != 0) return ErrnoError("epoll");
  std::stop_callback on_stop(stop, [this] { ::eventfd_write(wake_.get(), 1); });
  while (!stop.stop_requested()) {
    for (auto& exchange : TakeAsked()) Advance(std::move(exchange));
    Wait();
    Expire(std::chrono::steady_clock::now());
  }
  Exchanges left;
  {
    MutexLock lock(mutex_);
    ended_ = true;
    left.swap(asked_);
  }
  for (auto& [fd, exchange] : waiting_) left.push_back(std::move(exchange));
  waiting_.clear();
  for (auto& exchange : left) exchange->Finish(Error(Code::kCancelled, "context canceled"));
  return {};
}

}  // namespace keelson::kubelet
