// DNS over UDP: one thread and some sockets, with batches of packets in both directions.
#pragma once

#include <cstdint>
#include <memory>
#include <stop_token>
#include <vector>

#include "lib/base/error.h"
#include "lib/base/fd.h"
#include "lib/base/ip.h"
#include "proxy/dns/cluster_dns_options.h"
#include "proxy/dns/responder.h"

namespace keelson::proxy::dns {

class UdpServer {
 public:
  // Binds at once. An address need not be on an interface yet (IP_FREEBIND).
  static Result<std::unique_ptr<UdpServer>> Create(const std::vector<Listen>& addresses,
                                                   Responder& responder);

  // Serves until `stop`. The responder may send late answers after that.
  Result<> Run(std::stop_token stop);
  std::vector<uint16_t> ports() const;

 private:
  struct Batch;
  explicit UdpServer(Responder& responder) : responder_(responder) {}
  // False when no packet was there.
  bool Serve(const std::shared_ptr<UniqueFd>& socket, Batch& batch);
  void Send(int fd, Batch& batch, unsigned count);

  Responder& responder_;
  std::vector<std::shared_ptr<UniqueFd>> sockets_;
  UniqueFd wake_;
};

// A bound socket of SOCK_DGRAM or SOCK_STREAM, non-blocking.
Result<UniqueFd> BindSocket(const Listen& address, int type);
Result<uint16_t> LocalPort(int fd);

}  // namespace keelson::proxy::dns
