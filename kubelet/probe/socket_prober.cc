#include "kubelet/probe/socket_prober.h"

#include <arpa/inet.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <array>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "lib/http/http1_parser.h"

namespace keelson::kubelet {

namespace {

constexpr uint64_t kWake = 0;
constexpr std::chrono::seconds kRound(1);  // how late a deadline may be seen; no probe's timeout is shorter
constexpr size_t kMaxBody = 10 << 10;      // more of a body tells nothing more

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

// One question from its socket to its answer. Whoever holds it is alone with it.
struct SocketProber::Exchange {
  Exchange(Question asked, Done told) : question(std::move(asked)), done(std::move(told)) {}

  enum class State { kGoesOn, kEnded };

  // Goes on until the peer has to be waited for; `events` says for what. Answers when it has ended.
  State Advance(uint32_t& events) {
    if (!connected && !Connect(events)) return ended ? State::kEnded : State::kGoesOn;
    if (question.request.empty()) return Finish(Answer());
    if (!parser && !Send(events)) return ended ? State::kEnded : State::kGoesOn;
    events = EPOLLIN;
    return Receive();
  }

  State Finish(Result<Answer> answer) {
    ended = true;
    fd.Reset();
    done(std::move(answer));
    return State::kEnded;
  }
  void Expired() {
    if (!connected)
      Finish(DialError(question.name, ETIMEDOUT));
    else
      Finish(Error(Code::kTimeout,
                   "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"));
  }

  Question question;
  Done done;
  UniqueFd fd;
  bool ended = false;

 private:
  bool Connect(uint32_t& events) {
    const auto* address = reinterpret_cast<const sockaddr*>(&question.address.storage);
    if (!fd) fd.Reset(::socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!fd) return Finish(ErrnoError("socket")), false;
    // To a peer on this machine the first call brings the connection about, and the second one says so.
    for (int i = 0; i < 2 && !connected; ++i) {
      connected = ::connect(fd.get(), address, question.address.size) == 0 || errno == EISCONN;
      if (!connected && errno != EINPROGRESS && errno != EALREADY && errno != EINTR)
        return Finish(DialError(question.name, errno)), false;
    }
    if (!connected) events = EPOLLOUT;
    return connected;
  }

  bool Send(uint32_t& events) {
    while (sent < question.request.size()) {
      const ssize_t size =
          ::send(fd.get(), question.request.data() + sent, question.request.size() - sent, MSG_NOSIGNAL);
      if (size < 0 && errno == EINTR) continue;
      if (size < 0 && errno == EAGAIN) {
        events = EPOLLOUT;
        return false;
      }
      if (size < 0)
        return Finish(Error(Code::kUnavailable, "write tcp " + question.name + ": write: " + Lower(errno))),
               false;
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
      if (size < 0)
        return Finish(Error(Code::kUnavailable, "read tcp " + question.name + ": read: " + Lower(errno)));
      if (size == 0) return Closed();
      unread.append(buffer.data(), static_cast<size_t>(size));
      auto used = parser->Feed(unread);
      if (!used)
        return Finish(Error(Code::kUnavailable, "malformed HTTP response: " + used.error().message()));
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

  bool connected = false;
  size_t sent = 0;
  std::unique_ptr<http::Http1Parser> parser;
  std::string unread, body;
};

SocketProber::SocketProber()
    : epoll_(::epoll_create1(EPOLL_CLOEXEC)), wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

SocketProber::~SocketProber() = default;

void SocketProber::Ask(Question question, Done done) {
  auto exchange = std::make_unique<Exchange>(std::move(question), std::move(done));
  uint32_t events = 0;
  if (exchange->Advance(events) == Exchange::State::kGoesOn) Await(std::move(exchange), events);
}

void SocketProber::Await(std::unique_ptr<Exchange> exchange, uint32_t events) {
  {
    MutexLock lock(mutex_);
    if (!ended_) {
      const uint64_t id = next_++;
      epoll_event event = {events | EPOLLONESHOT, {.u64 = id}};
      const int fd = exchange->fd.get();
      exchanges_.emplace(id, std::move(exchange));  // before its event can come
      asked_ = true;
      if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0)
        ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event);  // it has waited before
      if (std::exchange(asleep_, false)) ::eventfd_write(wake_.get(), 1);
      return;
    }
  }
  exchange->Finish(Error(Code::kCancelled, "context canceled"));
}

std::unique_ptr<SocketProber::Exchange> SocketProber::Take(uint64_t id) {
  MutexLock lock(mutex_);
  auto found = exchanges_.extract(id);
  return found ? std::move(found.mapped()) : nullptr;
}

void SocketProber::Ready(uint64_t id) {
  auto exchange = Take(id);
  uint32_t events = 0;
  if (exchange && exchange->Advance(events) == Exchange::State::kGoesOn) Await(std::move(exchange), events);
}

void SocketProber::Expire(Time now) {
  std::vector<std::unique_ptr<Exchange>> late;
  {
    MutexLock lock(mutex_);
    for (auto it = exchanges_.begin(); it != exchanges_.end();) {
      auto at = it++;
      if (at->second->question.deadline <= now) late.push_back(std::move(exchanges_.extract(at).mapped()));
    }
  }
  for (auto& exchange : late) exchange->Expired();
}

int SocketProber::Timeout() {
  MutexLock lock(mutex_);
  // After a question one more round, so that regular ones need not wake this thread to be watched over.
  asleep_ = exchanges_.empty() && !std::exchange(asked_, false);
  if (asleep_) return -1;
  Time next = std::chrono::steady_clock::now() + kRound;
  for (const auto& [id, exchange] : exchanges_) next = std::min(next, exchange->question.deadline);
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(next - std::chrono::steady_clock::now());
  return static_cast<int>(std::max<int64_t>(left.count(), 0));
}

Result<> SocketProber::Run(std::stop_token stop) {
  epoll_event woken = {EPOLLIN, {.u64 = kWake}};
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, wake_.get(), &woken) != 0) return ErrnoError("epoll");
  std::stop_callback on_stop(stop, [this] { ::eventfd_write(wake_.get(), 1); });
  std::array<epoll_event, 64> events;
  while (!stop.stop_requested()) {
    const int count = ::epoll_wait(epoll_.get(), events.data(), events.size(), Timeout());
    for (int i = 0; i < count; ++i) {
      eventfd_t ignored;
      if (events[i].data.u64 == kWake)
        ::eventfd_read(wake_.get(), &ignored);
      else
        Ready(events[i].data.u64);
    }
    Expire(std::chrono::steady_clock::now());
  }
  Exchanges left;
  {
    MutexLock lock(mutex_);
    ended_ = true;
    left.swap(exchanges_);
  }
  for (auto& [id, exchange] : left) exchange->Finish(Error(Code::kCancelled, "context canceled"));
  return {};
}

}  // namespace keelson::kubelet
