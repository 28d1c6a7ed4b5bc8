// The loop side of a client: its connections and what waits for one. Internal to lib/http.
#pragma once

#include <deque>
#include <memory>
#include <unordered_set>
#include <vector>

#include "lib/http/client/connect.h"
#include "lib/http/client/exchange.h"

namespace keelson::http {

// A client's connection. One exchange at a time (HTTP/1.1) or many.
class ClientConnection : public Carrier {
 public:
  virtual bool HasRoom() const = 0;  // Submit() may be called
  virtual bool shared() const = 0;   // HTTP/2
  virtual void Submit(std::shared_ptr<Exchange> exchange) = 0;
  virtual void Close() = 0;  // its exchanges fail
};

class ClientCore : public std::enable_shared_from_this<ClientCore> {
 public:
  ClientCore(std::shared_ptr<event::Loop> loop, ClientOptions options, Endpoint endpoint, SslContextPtr any,
             SslContextPtr http1_only);

  const std::shared_ptr<event::Loop>& loop() const { return loop_; }
  const Endpoint& endpoint() const { return endpoint_; }

  // ---- loop thread ----
  void Start(std::shared_ptr<Exchange> exchange);
  void Shutdown();  // closes all; later exchanges fail
  // From connections: an HTTP/1.1 connection is free again; a connection is of no use any more; an exchange
  // got no answer at all and may be sent again.
  void Idle(const std::shared_ptr<ClientConnection>& connection);
  void Gone(const std::shared_ptr<ClientConnection>& connection);
  void Retry(std::shared_ptr<Exchange> exchange, const Error& error);

 private:
  void ConnectFor(std::shared_ptr<Exchange> exchange);
  void Connected(std::shared_ptr<Channel> channel, std::shared_ptr<Exchange> exchange);

  const std::shared_ptr<event::Loop> loop_;
  const ClientOptions options_;
  const Endpoint endpoint_;
  const SslContextPtr any_, http1_only_;
  std::unordered_set<std::shared_ptr<ClientConnection>> connections_;
  std::vector<std::shared_ptr<ClientConnection>> idle_;  // HTTP/1.1, the last used last
  std::deque<std::shared_ptr<Exchange>> waiting_;        // for the connection that tells the protocol
  bool connecting_ = false;
  bool speaks_http2_ = true;  // as far as is known
  bool shut_down_ = false;
};

std::shared_ptr<ClientConnection> MakeHttp1Connection(std::shared_ptr<ClientCore> core,
                                                      std::shared_ptr<Channel> channel);
std::shared_ptr<ClientConnection> MakeHttp2Connection(std::shared_ptr<ClientCore> core,
                                                      std::shared_ptr<Channel> channel);

}  // namespace keelson::http
