#include "lib/http/client/connect.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <thread>
#include <utility>
#include <vector>

namespace keelson::http {
namespace {

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size = 0;
};

Result<std::vector<SocketAddress>> Resolve(const Endpoint& endpoint, bool numeric) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | (numeric ? AI_NUMERICHOST : 0);
  addrinfo* list = nullptr;
  int error = getaddrinfo(endpoint.host.c_str(), endpoint.port.c_str(), &hints, &list);
  if (error) return Error(Code::kUnavailable, "resolve " + endpoint.host + ": " + gai_strerror(error));
  std::vector<SocketAddress> out;
  for (addrinfo* at = list; at; at = at->ai_next) {
    SocketAddress address;
    memcpy(&address.storage, at->ai_addr, at->ai_addrlen);
    address.size = at->ai_addrlen;
    out.push_back(address);
  }
  freeaddrinfo(list);
  return out;
}

// How soon a peer that has vanished silently is found out, even in the middle of a long watch.
struct Patience {
  int idle, interval, probes;  // seconds, seconds, number
  unsigned user_timeout;       // milliseconds
};
constexpr Patience kOfOne{15, 5, 6, 45000};
// Where a name has further addresses, there is another server to turn to.
constexpr Patience kOfSeveral{1, 1, 2, 1500};

void TuneTcp(int fd, const Patience& patience) {
  const int one = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof one);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &patience.idle, sizeof patience.idle);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &patience.interval, sizeof patience.interval);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &patience.probes, sizeof patience.probes);
  setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &patience.user_timeout, sizeof patience.user_timeout);
}

// The resolver orders families (RFC 6724). Within one, clients spread over the servers.
void Spread(std::vector<SocketAddress>& addresses) {
  static thread_local std::minstd_rand random{std::random_device{}()};
  for (auto begin = addresses.begin(); begin != addresses.end();) {
    const auto end = std::find_if(begin, addresses.end(), [&](const SocketAddress& one) {
      return one.storage.ss_family != begin->storage.ss_family;
    });
    std::shuffle(begin, end, random);
    begin = end;
  }
}

// What all attempts of one Connect() share.
struct Target {
  std::shared_ptr<event::Loop> loop;
  std::shared_ptr<const crypto::TlsContext> context;
  std::string server_name, what;  // `what`: for errors
  bool verify;
  std::chrono::milliseconds timeout;
};

// Connects and shakes hands with one address. On the loop's thread.
class Attempt : public std::enable_shared_from_this<Attempt> {
 public:
  using Done = std::function<void(const Attempt* self, Result<std::shared_ptr<Channel>>)>;
  Attempt(const Target& target, Done done) : target_(target), done_(std::move(done)) {}

  void Begin(const SocketAddress& address, const Patience& patience) {
    fd_.Reset(socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!fd_) return Fail(errno);
    if (address.storage.ss_family != AF_UNIX) TuneTcp(fd_.get(), patience);
    if (connect(fd_.get(), reinterpret_cast<const sockaddr*>(&address.storage), address.size) == 0) {
      return Connected();
    }
    if (errno != EINPROGRESS) return Fail(errno);
    watch_ = std::make_unique<event::FdWatch>(*target_.loop, fd_.get());
    watch_->AwaitWritable([self = shared_from_this()] { self->Outcome(); });
  }
  // No call of `done` follows.
  void Cancel() {
    done_ = nullptr;
    watch_.reset();
    if (channel_) channel_->Close();
  }

 private:
  void Fail(int number) {
    const Error error = Error::FromErrno(number, "connect to " + target_.what);
    End(Error(Code::kUnavailable, error.message(), number));
  }

  void Outcome() {
    if (!done_) return;
    watch_.reset();
    int number = 0;
    socklen_t size = sizeof number;
    getsockopt(fd_.get(), SOL_SOCKET, SO_ERROR, &number, &size);
    if (number != 0) return Fail(number);
    Connected();
  }

  void Connected() {
    std::unique_ptr<crypto::TlsStream> tls;
    if (target_.context) {
      Result<std::unique_ptr<crypto::TlsStream>> made =
          crypto::TlsStream::Connect(*target_.context, fd_.get(), target_.server_name, target_.verify);
      if (!made) return End(made.error());
      tls = std::move(*made);
    }
    channel_ = std::make_shared<Channel>(target_.loop, std::move(fd_), std::move(tls));
    channel_->Handshake(target_.timeout, [self = shared_from_this()](Result<> result) {
      if (!result) return self->End(result.error().Wrap("connect to " + self->target_.what));
      self->End(self->channel_);
    });
  }

  void End(Result<std::shared_ptr<Channel>> result) {
    if (!done_) return;
    if (!result && channel_) channel_->Close();
    const auto self = shared_from_this();
    std::exchange(done_, nullptr)(this, std::move(result));
  }

  const Target target_;
  Done done_;
  std::unique_ptr<event::FdWatch> watch_;
  UniqueFd fd_;
  std::shared_ptr<Channel> channel_;
};

// Tries the addresses one after the other, each as soon as the one before has failed or is late: the first that is
// connected is taken (RFC 8305).
class Connecting : public std::enable_shared_from_this<Connecting> {
 public:
  Connecting(std::shared_ptr<event::Loop> loop, Endpoint endpoint,
             std::shared_ptr<const crypto::TlsContext> context, const crypto::TlsClientOptions& tls,
             std::chrono::milliseconds timeout, std::function<void(Result<ServerConnection>)> done)
      : endpoint_(std::move(endpoint)),
        target_{std::move(loop),
                std::move(context),
                tls.server_name.empty() ? endpoint_.host : tls.server_name,
                endpoint_.unix_path.empty() ? endpoint_.host + ":" + endpoint_.port : endpoint_.unix_path,
                !tls.insecure_skip_verify,
                timeout},
        done_(std::move(done)),
        timer_(std::make_unique<event::Timer>(*target_.loop)),
        late_(std::make_unique<event::Timer>(*target_.loop)) {}

  void Begin() {
    timer_->Start(target_.timeout, [self = shared_from_this()] {
      self->End(Error(Code::kUnavailable, "connect to " + self->target_.what + ": timed out"));
    });
    if (!endpoint_.unix_path.empty()) return BeginUnix();
    if (Result<std::vector<SocketAddress>> literal = Resolve(endpoint_, true)) {
      return Resolved(std::move(literal));
    }
    // getaddrinfo blocks and cannot be cancelled: run it in a detached thread.
    std::thread([self = shared_from_this(), loop = target_.loop, endpoint = endpoint_]() mutable {
      auto result = Resolve(endpoint, false);
      loop->Post([self = std::move(self), result = std::move(result)]() mutable {
        self->Resolved(std::move(result));
      });
    }).detach();
  }

 private:
  static constexpr std::chrono::milliseconds kLate{250};

  void BeginUnix() {
    SocketAddress address;
    auto* un = reinterpret_cast<sockaddr_un*>(&address.storage);
    un->sun_family = AF_UNIX;
    if (endpoint_.unix_path.size() >= sizeof un->sun_path) {
      return End(Error(Code::kBadRequest, "socket path too long: " + endpoint_.unix_path));
    }
    memcpy(un->sun_path, endpoint_.unix_path.c_str(), endpoint_.unix_path.size() + 1);
    address.size = sizeof *un;
    addresses_.push_back(address);
    Next();
  }

  void Resolved(Result<std::vector<SocketAddress>> addresses) {
    if (!done_) return;
    if (!addresses) return End(addresses.error());
    addresses_ = std::move(*addresses);
    Spread(addresses_);
    Next();
  }

  void Next() {
    if (next_ == addresses_.size()) {
      if (attempts_.empty()) End(last_error_);
      return;
    }
    const SocketAddress& address = addresses_[next_++];
    auto attempt = std::make_shared<Attempt>(
        target_, [self = shared_from_this()](const Attempt* one, Result<std::shared_ptr<Channel>> result) {
          self->Ended(one, std::move(result));
        });
    attempts_.push_back(attempt);
    if (next_ < addresses_.size()) {
      late_->Start(kLate, [self = shared_from_this()] { self->Next(); });
    }
    attempt->Begin(address, addresses_.size() > 1 ? kOfSeveral : kOfOne);
  }

  void Ended(const Attempt* attempt, Result<std::shared_ptr<Channel>> result) {
    std::erase_if(attempts_, [&](const auto& one) { return one.get() == attempt; });
    if (!done_) {
      if (result) (*result)->Close();
      return;
    }
    if (result) return End(std::move(result));
    last_error_ = result.error();
    late_->Cancel();
    Next();
  }

  void End(Result<std::shared_ptr<Channel>> result) {
    if (!done_) return;
    auto done = std::exchange(done_, nullptr);
    auto self = shared_from_this();
    timer_->Cancel();
    late_->Cancel();
    for (const auto& attempt : std::exchange(attempts_, {})) attempt->Cancel();
    if (!result) return done(result.error());
    done(ServerConnection{std::move(*result), addresses_.size() > 1});
  }

  const Endpoint endpoint_;
  const Target target_;
  std::function<void(Result<ServerConnection>)> done_;
  std::unique_ptr<event::Timer> timer_, late_;
  std::vector<SocketAddress> addresses_;
  size_t next_ = 0;
  std::vector<std::shared_ptr<Attempt>> attempts_;
  Error last_error_{Code::kUnavailable, "no address"};
};

}  // namespace

Result<Endpoint> ParseBaseUrl(const std::string& url) {
  Endpoint endpoint;
  size_t colon = url.find("://");
  std::string scheme = url.substr(0, colon);
  if (colon == std::string::npos || (scheme != "http" && scheme != "https" && scheme != "unix")) {
    return Error(Code::kBadRequest, "URL \"" + url + "\": expected https://, http:// or unix://");
  }
  std::string rest = url.substr(colon + 3);
  if (scheme == "unix") {
    endpoint.unix_path = rest;
    endpoint.authority = "localhost";
    return endpoint;
  }
  endpoint.tls = scheme == "https";
  endpoint.authority = rest.substr(0, rest.find_first_of("/?"));
  std::string host = endpoint.authority;
  if (size_t at = host.rfind('@'); at != std::string::npos) host = host.substr(at + 1);
  size_t port = host.rfind(':');
  size_t bracket = host.rfind(']');
  if (port != std::string::npos && (bracket == std::string::npos || port > bracket)) {
    endpoint.port = host.substr(port + 1);
    host = host.substr(0, port);
  } else {
    endpoint.port = endpoint.tls ? "443" : "80";
  }
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  if (host.empty()) return Error(Code::kBadRequest, "URL \"" + url + "\": no host");
  endpoint.host = host;
  return endpoint;
}

void Connect(std::shared_ptr<event::Loop> loop, const Endpoint& endpoint,
             std::shared_ptr<const crypto::TlsContext> context, const crypto::TlsClientOptions& tls,
             std::chrono::milliseconds timeout, std::function<void(Result<ServerConnection>)> done) {
  std::make_shared<Connecting>(std::move(loop), endpoint, std::move(context), tls, timeout, std::move(done))
      ->Begin();
}

}  // namespace keelson::http
