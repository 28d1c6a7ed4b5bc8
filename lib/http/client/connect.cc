#include "lib/http/client/connect.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstring>
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

void TuneTcp(int fd) {
  // Detects a peer that vanished silently within a minute, even in the middle of a long watch.
  int one = 1, idle = 15, interval = 5, probes = 6;
  unsigned user_timeout = 45000;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof one);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
  setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &user_timeout, sizeof user_timeout);
}

class Connecting : public std::enable_shared_from_this<Connecting> {
 public:
  Connecting(std::shared_ptr<event::Loop> loop, Endpoint endpoint,
             std::shared_ptr<const crypto::TlsContext> context, const crypto::TlsClientOptions& tls,
             std::chrono::milliseconds timeout, std::function<void(Result<std::shared_ptr<Channel>>)> done)
      : loop_(std::move(loop)),
        endpoint_(std::move(endpoint)),
        context_(std::move(context)),
        server_name_(tls.server_name.empty() ? endpoint_.host : tls.server_name),
        verify_(!tls.insecure_skip_verify),
        timeout_(timeout),
        done_(std::move(done)),
        timer_(std::make_unique<event::Timer>(*loop_)) {}

  void Begin() {
    timer_->Start(timeout_, [self = shared_from_this()] {
      self->End(Error(Code::kUnavailable, "connect to " + self->Name() + ": timed out"));
    });
    if (!endpoint_.unix_path.empty()) return BeginUnix();
    if (Result<std::vector<SocketAddress>> literal = Resolve(endpoint_, true)) {
      return Resolved(std::move(literal));
    }
    // getaddrinfo blocks and cannot be cancelled: run it in a detached thread.
    std::thread([self = shared_from_this(), loop = loop_, endpoint = endpoint_]() mutable {
      auto result = Resolve(endpoint, false);
      loop->Post([self = std::move(self), result = std::move(result)]() mutable {
        self->Resolved(std::move(result));
      });
    }).detach();
  }

 private:
  std::string Name() const {
    return endpoint_.unix_path.empty() ? endpoint_.host + ":" + endpoint_.port : endpoint_.unix_path;
  }

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
    Next();
  }

  void Next() {
    while (next_ < addresses_.size()) {
      SocketAddress& address = addresses_[next_++];
      fd_.Reset(socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
      if (!fd_) {
        last_errno_ = errno;
        continue;
      }
      if (address.storage.ss_family != AF_UNIX) TuneTcp(fd_.get());
      if (connect(fd_.get(), reinterpret_cast<sockaddr*>(&address.storage), address.size) == 0) {
        return Connected();
      }
      if (errno == EINPROGRESS) {
        watch_ = std::make_unique<event::FdWatch>(*loop_, fd_.get());
        watch_->AwaitWritable([self = shared_from_this()] { self->Outcome(); });
        return;
      }
      last_errno_ = errno;
    }
    Error error = Error::FromErrno(last_errno_, "connect to " + Name());
    End(Error(Code::kUnavailable, error.message(), last_errno_));
  }

  void Outcome() {
    if (!done_) return;
    watch_.reset();
    socklen_t size = sizeof last_errno_;
    getsockopt(fd_.get(), SOL_SOCKET, SO_ERROR, &last_errno_, &size);
    if (last_errno_ == 0) return Connected();
    Next();
  }

  void Connected() {
    std::unique_ptr<crypto::TlsStream> tls;
    if (context_) {
      Result<std::unique_ptr<crypto::TlsStream>> made =
          crypto::TlsStream::Connect(*context_, fd_.get(), server_name_, verify_);
      if (!made) return End(made.error());
      tls = std::move(*made);
    }
    channel_ = std::make_shared<Channel>(loop_, std::move(fd_), std::move(tls));
    channel_->Handshake(timeout_, [self = shared_from_this()](Result<> result) {
      if (!result) return self->End(result.error().Wrap("connect to " + self->Name()));
      self->End(self->channel_);
    });
  }

  void End(Result<std::shared_ptr<Channel>> result) {
    if (!done_) return;
    auto done = std::exchange(done_, nullptr);
    auto self = shared_from_this();
    timer_->Cancel();
    watch_.reset();
    if (!result && channel_) channel_->Close();
    channel_ = nullptr;
    done(std::move(result));
  }

  std::shared_ptr<event::Loop> loop_;
  const Endpoint endpoint_;
  std::shared_ptr<const crypto::TlsContext> context_;
  const std::string server_name_;
  const bool verify_;
  const std::chrono::milliseconds timeout_;
  std::function<void(Result<std::shared_ptr<Channel>>)> done_;
  std::unique_ptr<event::Timer> timer_;
  std::unique_ptr<event::FdWatch> watch_;
  std::vector<SocketAddress> addresses_;
  size_t next_ = 0;
  UniqueFd fd_;
  std::shared_ptr<Channel> channel_;
  int last_errno_ = EADDRNOTAVAIL;
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
             std::chrono::milliseconds timeout, std::function<void(Result<std::shared_ptr<Channel>>)> done) {
  std::make_shared<Connecting>(std::move(loop), endpoint, std::move(context), tls, timeout, std::move(done))
      ->Begin();
}

}  // namespace keelson::http
