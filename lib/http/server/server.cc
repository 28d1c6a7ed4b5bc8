#include "lib/http/server/server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>

#include "lib/base/log.h"
#include "lib/http/server/core.h"

namespace keelson::http {
namespace {

struct Address {
  sockaddr_storage storage{};
  socklen_t size = sizeof(sockaddr_storage);
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
  uint16_t port() {
    if (storage.ss_family == AF_INET6) return ntohs(reinterpret_cast<sockaddr_in6*>(&storage)->sin6_port);
    return ntohs(reinterpret_cast<sockaddr_in*>(&storage)->sin_port);
  }
  std::string ToString() {
    char text[INET6_ADDRSTRLEN] = "";
    if (storage.ss_family == AF_INET6) {
      auto* v6 = reinterpret_cast<sockaddr_in6*>(&storage);
      if (IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr)) {
        inet_ntop(AF_INET, v6->sin6_addr.s6_addr + 12, text, sizeof text);
        return std::string(text) + ":" + std::to_string(port());
      }
      inet_ntop(AF_INET6, &v6->sin6_addr, text, sizeof text);
      return "[" + std::string(text) + "]:" + std::to_string(port());
    }
    inet_ntop(AF_INET, &reinterpret_cast<sockaddr_in*>(&storage)->sin_addr, text, sizeof text);
    return std::string(text) + ":" + std::to_string(port());
  }
};

Result<Address> ParseAddress(const std::string& literal, uint16_t port) {
  Address address;
  auto* v4 = reinterpret_cast<sockaddr_in*>(&address.storage);
  if (inet_pton(AF_INET, literal.c_str(), &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    v4->sin_port = htons(port);
    address.size = sizeof(sockaddr_in);
    return address;
  }
  auto* v6 = reinterpret_cast<sockaddr_in6*>(&address.storage);
  if (inet_pton(AF_INET6, literal.c_str(), &v6->sin6_addr) == 1) {
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(port);
    address.size = sizeof(sockaddr_in6);
    return address;
  }
  return Error(Code::kBadRequest, "listen address " + literal + ": not an IP address");
}

// A connection before HTTP starts on it.
class Arriving final : public Connection, public std::enable_shared_from_this<Arriving> {
 public:
  Arriving(std::shared_ptr<ServerCore> core, std::shared_ptr<Channel> channel, std::string remote)
      : core_(std::move(core)), channel_(std::move(channel)), remote_(std::move(remote)) {}
  event::Loop& loop() override { return channel_->loop(); }
  void Drain() override { Abort(); }
  void Abort() override {
    channel_->Close();
    core_->Remove(shared_from_this());
  }
  void Begin() {
    if (core_->draining) return channel_->Close();
    core_->Add(shared_from_this());
    channel_->Handshake(core_->options.header_timeout, [self = shared_from_this()](Result<> result) {
      self->core_->Remove(self);
      if (!result) {
        if (self->core_->options.on_handshake_error) self->core_->options.on_handshake_error();
        return log::Debug("TLS handshake failed", {{"remote", self->remote_}, {"err", result.error()}});
      }
      Origin origin{self->remote_, std::nullopt, false};
      const crypto::TlsStream* tls = self->channel_->tls();
      if (tls) origin.peer = tls->VerifiedPeer();
      if (tls) origin.peer_refused = !origin.peer && tls->HasShownCertificate();
      bool http2 = tls && tls->NegotiatedProtocol() == "h2";
      (http2 ? StartHttp2 : StartHttp1)(self->core_, self->channel_, std::move(origin));
    });
  }

 private:
  std::shared_ptr<ServerCore> core_;
  std::shared_ptr<Channel> channel_;
  std::string remote_;
};

class ServerImpl final : public Server {
 public:
  ServerImpl(ServerOptions options, Handler handler)
      : core_(std::make_shared<ServerCore>(std::move(options), std::move(handler))) {}
  ~ServerImpl() override { core_->pool.Stop(); }

  Result<> Bind() {
    KEELSON_RETURN_IF_ERROR(ReloadTls());
    const ServerOptions& options = core_->options;
    KEELSON_ASSIGN_OR_RETURN(Address address, ParseAddress(options.address, options.port));
    listener_.Reset(socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!listener_) return ErrnoError("socket");
    int one = 1;
    setsockopt(listener_.get(), SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (options.reuse_port && setsockopt(listener_.get(), SOL_SOCKET, SO_REUSEPORT, &one, sizeof one) < 0) {
      return ErrnoError("SO_REUSEPORT");
    }
    std::string where = options.address + " port " + std::to_string(options.port);
    if (bind(listener_.get(), address.get(), address.size) < 0) return ErrnoError("bind " + where);
    if (listen(listener_.get(), 1024) < 0) return ErrnoError("listen on " + where);
    address.size = sizeof address.storage;
    getsockname(listener_.get(), address.get(), &address.size);
    port_ = address.port();
    return {};
  }

  uint16_t port() const override { return port_; }
  Result<> Run(std::stop_token stop, std::chrono::milliseconds grace) override;
  Result<> ReloadTls() override {
    if (!core_->options.tls) return {};
    KEELSON_ASSIGN_OR_RETURN(std::shared_ptr<const crypto::TlsContext> context,
                             crypto::TlsContext::ForServer(*core_->options.tls));
    MutexLock lock(mutex_);
    context_ = std::move(context);
    return {};
  }

 private:
  void StartAccepting();
  void Accept();
  void Welcome(UniqueFd fd, std::string remote);
  bool AwaitNoConnections(std::chrono::milliseconds timeout);

  std::shared_ptr<ServerCore> core_;
  UniqueFd listener_;
  uint16_t port_ = 0;
  std::vector<std::shared_ptr<event::Loop>> loops_;
  size_t next_loop_ = 0;                       // loop 0
  std::unique_ptr<event::FdWatch> accepting_;  // loop 0
  std::unique_ptr<event::Timer> pause_;        // loop 0
  Mutex mutex_;
  std::shared_ptr<const crypto::TlsContext> context_ KEELSON_GUARDED_BY(mutex_);
};

void ServerImpl::StartAccepting() {
  accepting_->AwaitReadable([this] { Accept(); });
}

void ServerImpl::Accept() {
  for (int i = 0; i < 64; ++i) {
    Address peer;
    UniqueFd fd(accept4(listener_.get(), peer.get(), &peer.size, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (fd) {
      Welcome(std::move(fd), peer.ToString());
      continue;
    }
    if (errno == EINTR || errno == ECONNABORTED) continue;
    if (errno == EAGAIN) break;
    // No descriptors or memory: leave connections in the backlog until some are free again.
    log::Warn("Accept failed", {{"err", ErrnoError("accept")}});
    return pause_->Start(std::chrono::milliseconds(100), [this] { StartAccepting(); });
  }
  StartAccepting();
}

void ServerImpl::Welcome(UniqueFd fd, std::string remote) {
  int one = 1, idle = 60, interval = 15;
  unsigned user_timeout = 60000;  // for a client that vanishes while we send to it
  setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  setsockopt(fd.get(), SOL_SOCKET, SO_KEEPALIVE, &one, sizeof one);
  setsockopt(fd.get(), IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
  setsockopt(fd.get(), IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval);
  setsockopt(fd.get(), IPPROTO_TCP, TCP_USER_TIMEOUT, &user_timeout, sizeof user_timeout);
  std::unique_ptr<crypto::TlsStream> tls;
  if (core_->options.tls) {
    std::shared_ptr<const crypto::TlsContext> context;
    {
      MutexLock lock(mutex_);
      context = context_;
    }
    Result<std::unique_ptr<crypto::TlsStream>> made = crypto::TlsStream::Accept(*context, fd.get());
    if (!made) return log::Warn("Connection dropped", {{"err", made.error()}});
    tls = std::move(*made);
  }
  auto loop = loops_[next_loop_++ % loops_.size()];
  auto channel = std::make_shared<Channel>(loop, std::move(fd), std::move(tls));
  auto arriving = std::make_shared<Arriving>(core_, std::move(channel), std::move(remote));
  loop->Post([arriving] { arriving->Begin(); });
}

bool ServerImpl::AwaitNoConnections(std::chrono::milliseconds timeout) KEELSON_NO_THREAD_SAFETY_ANALYSIS {
  std::unique_lock lock(core_->mutex);
  return core_->changed.wait_for(
      lock, timeout, [this]() KEELSON_NO_THREAD_SAFETY_ANALYSIS { return core_->connections.empty(); });
}

Result<> ServerImpl::Run(std::stop_token stop, std::chrono::milliseconds grace) {
  for (int i = 0; i < std::max(core_->options.io_threads, 1); ++i) {
    loops_.push_back(event::Loop::Create("http-io"));
  }
  event::Loop& first = *loops_[0];
  first.Post([this, &first] {
    accepting_ = std::make_unique<event::FdWatch>(first, listener_.get());
    pause_ = std::make_unique<event::Timer>(first);
    StartAccepting();
  });
  {
    Mutex mutex;
    CondVar cv;
    std::unique_lock lock(mutex);
    cv.wait(lock, stop, [] { return false; });
  }
  core_->draining = true;
  Mutex mutex;
  CondVar cv;
  bool closed = false;
  first.Post([&] {
    accepting_.reset();
    pause_.reset();
    listener_.Reset();
    MutexLock lock(mutex);
    closed = true;
    cv.notify_all();
  });
  {
    std::unique_lock lock(mutex);
    cv.wait(lock, [&] { return closed; });
  }
  for (auto& connection : core_->All()) connection->loop().Post([connection] { connection->Drain(); });
  if (!AwaitNoConnections(grace)) {
    for (auto& connection : core_->All()) connection->loop().Post([connection] { connection->Abort(); });
    AwaitNoConnections(std::chrono::seconds(5));
  }
  core_->pool.Stop();
  return {};
}

}  // namespace

Result<std::unique_ptr<Server>> Server::Listen(ServerOptions options, Handler handler) {
  auto server = std::make_unique<ServerImpl>(std::move(options), std::move(handler));
  KEELSON_RETURN_IF_ERROR(server->Bind());
  return std::unique_ptr<Server>(std::move(server));
}

}  // namespace keelson::http
