#include "lib/http/client/client.h"

#include <algorithm>

#include "lib/http/client/core.h"

namespace keelson::http {

constexpr size_t kKeptIdle = 8;

ClientCore::ClientCore(std::shared_ptr<event::Loop> loop, ClientOptions options, Endpoint endpoint,
                       std::shared_ptr<const crypto::TlsContext> any,
                       std::shared_ptr<const crypto::TlsContext> http1_only)
    : loop_(std::move(loop)),
      options_(std::move(options)),
      endpoint_(std::move(endpoint)),
      any_(std::move(any)),
      http1_only_(std::move(http1_only)),
      speaks_http2_(options_.http2 && endpoint_.tls) {}

void ClientCore::Start(std::shared_ptr<Exchange> exchange) {
  if (exchange->over()) return;
  if (shut_down_) return exchange->OnFail(Error(Code::kCancelled, "client closed"));
  ++exchange->attempts;
  if (exchange->upgrade) return ConnectFor(std::move(exchange));
  for (const auto& connection : connections_) {
    if (connection->shared() && connection->HasRoom()) return connection->Submit(std::move(exchange));
  }
  if (!idle_.empty()) {
    auto connection = std::move(idle_.back());
    idle_.pop_back();
    return connection->Submit(std::move(exchange));
  }
  // Until the first handshake shows the protocol, or there is more room, one connection is made for all.
  if (speaks_http2_ && connecting_) return waiting_.push_back(std::move(exchange));
  ConnectFor(std::move(exchange));
}

void ClientCore::ConnectFor(std::shared_ptr<Exchange> exchange) {
  bool upgrade = exchange->upgrade;
  bool first = !upgrade && speaks_http2_;
  if (first) connecting_ = true;
  Connect(loop_, endpoint_, upgrade ? http1_only_ : any_, options_.tls, options_.connect_timeout,
          [self = shared_from_this(), exchange, first](Result<ServerConnection> server) {
            if (first) self->connecting_ = false;
            std::deque<std::shared_ptr<Exchange>> waiting;
            if (first) waiting.swap(self->waiting_);
            if (!server) {
              exchange->OnFail(server.error());
              for (auto& other : waiting) other->OnFail(server.error());
              return;
            }
            self->Connected(std::move(*server), exchange);
            for (auto& other : waiting) self->Start(std::move(other));
          });
}

void ClientCore::Connected(ServerConnection server, std::shared_ptr<Exchange> exchange) {
  std::shared_ptr<Channel>& channel = server.channel;
  if (shut_down_) {
    channel->Close();
    return exchange->OnFail(Error(Code::kCancelled, "client closed"));
  }
  bool http2 = channel->tls() && channel->tls()->NegotiatedProtocol() == "h2";
  if (!exchange->upgrade) speaks_http2_ = http2;
  auto connection = http2 ? MakeHttp2Connection(shared_from_this(), std::move(server))
                          : MakeHttp1Connection(shared_from_this(), std::move(channel));
  connections_.insert(connection);
  if (exchange->over()) {
    // The caller has given up; another exchange can use the connection.
    if (exchange->upgrade) return connection->Close();
    return connection->shared() ? void() : Idle(connection);
  }
  connection->Submit(std::move(exchange));
}

void ClientCore::Idle(const std::shared_ptr<ClientConnection>& connection) {
  if (idle_.size() >= kKeptIdle) return connection->Close();
  idle_.push_back(connection);
}

void ClientCore::Gone(const std::shared_ptr<ClientConnection>& connection) {
  // The argument may refer to what erase() destroys.
  const auto keep = connection;  // NOLINT(performance-unnecessary-copy-initialization)
  std::erase(idle_, keep);
  connections_.erase(keep);
}

void ClientCore::Retry(std::shared_ptr<Exchange> exchange, const Error& error) {
  const auto& body = exchange->request.body_stream;
  if (exchange->attempts >= 4 || (body && body->touched())) return exchange->OnFail(error);
  Start(std::move(exchange));
}

void ClientCore::Shutdown() {
  shut_down_ = true;
  auto all = connections_;
  for (const auto& connection : all) connection->Close();
  for (auto& exchange : std::exchange(waiting_, {})) {
    exchange->OnFail(Error(Code::kCancelled, "client closed"));
  }
}

namespace {

class Reader final : public ResponseReader {
 public:
  explicit Reader(std::shared_ptr<Exchange> exchange) : exchange_(std::move(exchange)) {}
  ~Reader() override {
    exchange_->OnReadable(nullptr);
    exchange_->GiveUp();
  }
  int status() const override { return exchange_->status(); }
  const Headers& headers() const override { return exchange_->headers(); }
  Result<std::string> Read(std::stop_token stop, std::chrono::milliseconds idle) override {
    return exchange_->Read(std::move(stop), idle);
  }
  void OnReadable(std::function<void()> readable) override { exchange_->OnReadable(std::move(readable)); }

 private:
  std::shared_ptr<Exchange> exchange_;
};

class Call final : public ClientCall {
 public:
  explicit Call(std::shared_ptr<Exchange> exchange) : exchange_(std::move(exchange)) {}
  void Resume() override { exchange_->Resume(); }
  void Cancel() override { exchange_->GiveUp(); }

 private:
  const std::shared_ptr<Exchange> exchange_;
};

class Pending final : public PendingResponse {
 public:
  explicit Pending(std::shared_ptr<Exchange> exchange) : exchange_(std::move(exchange)) {}
  ~Pending() override {
    if (!awaited_) exchange_->GiveUp();
  }
  Result<ClientResponse> Await(std::chrono::milliseconds timeout, std::stop_token stop) override {
    awaited_ = true;
    KEELSON_RETURN_IF_ERROR(exchange_->AwaitEnd(Exchange::DeadlineIn(timeout), std::move(stop)));
    return ClientResponse{exchange_->status(), std::move(exchange_->headers()), std::move(exchange_->body())};
  }

 private:
  std::shared_ptr<Exchange> exchange_;
  bool awaited_ = false;
};

class ClientImpl final : public Client {
 public:
  explicit ClientImpl(std::shared_ptr<ClientCore> core) : core_(std::move(core)) {}
  ~ClientImpl() override {
    core_->loop()->Post([core = core_] { core->Shutdown(); });
  }

  Result<ClientResponse> Do(const ClientRequest& request, std::chrono::milliseconds timeout,
                            std::stop_token stop) override {
    return Pending(Begin(request, false, false)).Await(timeout, std::move(stop));
  }

  std::unique_ptr<PendingResponse> Start(const ClientRequest& request) override {
    return std::make_unique<Pending>(Begin(request, false, false));
  }

  Result<std::unique_ptr<ResponseReader>> Open(const ClientRequest& request,
                                               std::chrono::milliseconds timeout,
                                               std::stop_token stop) override {
    auto exchange = Begin(request, true, false);
    KEELSON_RETURN_IF_ERROR(exchange->AwaitHead(Exchange::DeadlineIn(timeout), std::move(stop)));
    return std::unique_ptr<ResponseReader>(new Reader(std::move(exchange)));
  }

  Result<Upgraded> Upgrade(const ClientRequest& request, std::chrono::milliseconds timeout,
                           std::stop_token stop, ClientResponse* refusal) override {
    auto exchange = Begin(request, false, true);
    KEELSON_RETURN_IF_ERROR(exchange->AwaitEnd(Exchange::DeadlineIn(timeout), std::move(stop)));
    if (auto stream = exchange->TakeStream()) {
      return Upgraded{std::move(exchange->headers()), MakeStream(std::move(stream))};
    }
    Error error(CodeOf(exchange->status(), ""), exchange->body());
    if (refusal) *refusal = {exchange->status(), std::move(exchange->headers()), std::move(exchange->body())};
    return error;
  }

  std::shared_ptr<ClientCall> Send(ClientRequest request, bool upgrade, std::chrono::milliseconds timeout,
                                   std::shared_ptr<ResponseSink> sink) override {
    auto exchange = std::make_shared<Exchange>(core_->loop(), std::move(request), std::move(sink));
    exchange->upgrade = upgrade;
    core_->loop()->Post([core = core_, exchange, timeout] {
      if (timeout != std::chrono::milliseconds::max()) exchange->FailAfter(timeout);
      core->Start(exchange);
    });
    return std::make_shared<Call>(std::move(exchange));
  }

 private:
  std::shared_ptr<Exchange> Begin(const ClientRequest& request, bool streaming, bool upgrade) {
    auto exchange = std::make_shared<Exchange>(core_->loop(), request, streaming);
    exchange->upgrade = upgrade;
    core_->loop()->Post([core = core_, exchange] { core->Start(exchange); });
    return exchange;
  }
  std::shared_ptr<ClientCore> core_;
};

}  // namespace

Result<std::unique_ptr<Client>> Client::Create(ClientOptions options) {
  KEELSON_ASSIGN_OR_RETURN(Endpoint endpoint, ParseBaseUrl(options.base_url));
  std::shared_ptr<const crypto::TlsContext> any, http1_only;
  if (endpoint.tls) {
    KEELSON_ASSIGN_OR_RETURN(http1_only, crypto::TlsContext::ForClient(options.tls, false));
    any = http1_only;
    if (options.http2) {
      KEELSON_ASSIGN_OR_RETURN(any, crypto::TlsContext::ForClient(options.tls, true));
    }
  }
  auto core = std::make_shared<ClientCore>(event::Loop::Shared(), std::move(options), std::move(endpoint),
                                           any, http1_only);
  return std::unique_ptr<Client>(new ClientImpl(std::move(core)));
}

}  // namespace keelson::http
