// The loop side of a client: its connections, and exchanges that wait for one. Internal to lib/http/client.
#pragma once

#include <deque>
#include <memory>
#include <unordered_set>
#include <vector>

#include "lib/http/client/connect.h"
#include "lib/http/client/exchange.h"

namespace keelson::http {

// A connection of a client. Runs one exchange at a time (HTTP/1.1) or many (HTTP/2).
class ClientConnection : public Carrier {
 public:
  virtual bool HasRoom() const = 0;  // whether Submit() may be called
  virtual bool shared() const = 0;   // HTTP/2
  virtual void Submit(std::shared_ptr<Exchange> exchange) = 0;
  virtual void Close() = 0;  // fails its exchanges
};

class ClientCore : public std::enable_shared_from_this<ClientCore> {
 public:
  ClientCore(std::shared_ptr<event::Loop> loop, ClientOptions options, Endpoint endpoint,
             std::shared_ptr<const crypto::TlsContext> any,
             std::shared_ptr<const crypto::TlsContext> http1_only);

  const std::shared_ptr<event::Loop>& loop() const { return loop_; }
  const Endpoint& endpoint() const { return endpoint_; }

  // ---- loop thread ----
  void Start(std::shared_ptr<Exchange> exchange);
  void Shutdown();  // closes everything; later exchanges fail
  // Called by connections: an HTTP/1.1 connection is free again (Idle), a connection is no longer usable
  // (Gone), an exchange got no response at all and may be sent again (Retry).
  void Idle(const std::shared_ptr<ClientConnection>& connection);
  void Gone(const std::shared_ptr<ClientConnection>& connection);
  void Retry(std::shared_ptr<Exchange> exchange, const Error& error);

 private:
  void ConnectFor(std::shared_ptr<Exchange> exchange);
  void Connected(ServerConnection server, std::shared_ptr<Exchange> exchange);

  const std::shared_ptr<event::Loop> loop_;
  const ClientOptions options_;
  const Endpoint endpoint_;
  const std::shared_ptr<const crypto::TlsContext> any_, http1_only_;
  std::unordered_set<std::shared_ptr<ClientConnection>> connections_;
  std::vector<std::shared_ptr<ClientConnection>> idle_;  // HTTP/1.1, most recently used last
  std::deque<std::shared_ptr<Exchange>> waiting_;        // for the connection that will show the protocol
  bool connecting_ = false;
  bool speaks_http2_ = true;  // as far as known
  bool shut_down_ = false;
};

std::shared_ptr<ClientConnection> MakeHttp1Connection(std::shared_ptr<ClientCore> core,
                                                      std::shared_ptr<Channel> channel);
// Asks a server that is silent for a sign of life, and gives it up when none comes: its program may stand still while the kernel
// keeps the connection.
std::shared_ptr<ClientConnection> MakeHttp2Connection(std::shared_ptr<ClientCore> core,
                                                      ServerConnection server);

}  // namespace keelson::http
