// DNS over TCP (RFC 7766) on an event loop: several questions a connection, with answers in any order. Closes idle
// connections, and connections that do not read their answers.
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "lib/event/loop.h"
#include "proxy/dns/udp_server.h"

namespace keelson::proxy::dns {

struct TcpOptions {
  size_t max_connections = 1000;
  size_t max_pending = 32;  // questions of a connection that wait for the resolver; then reading pauses
  std::chrono::milliseconds idle = std::chrono::seconds(10);
};

class TcpServer {
 public:
  // Binds and serves at once, until it is destroyed (not on the loop's thread).
  static Result<std::unique_ptr<TcpServer>> Create(const std::vector<Listen>& addresses, Responder& responder,
                                                   std::shared_ptr<event::Loop> loop,
                                                   TcpOptions options = {});
  ~TcpServer();
  std::vector<uint16_t> ports() const;

 private:
  class Connection;
  struct State;
  explicit TcpServer(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

}  // namespace keelson::proxy::dns
