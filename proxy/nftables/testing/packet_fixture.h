// For tests: a node with two pods on a bridge and a client outside, each in a network namespace of its own,
// and servers and connections between them over real sockets.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "lib/base/fd.h"
#include "lib/base/ip.h"
#include "lib/linux/netns.h"

namespace keelson::proxy {

// Greets every connection with "NAME PEER-IP\n" and then echoes what comes.
class EchoServer {
 public:
  EchoServer(std::string name, const linux::NetNs& netns, const IpAddress& ip, uint16_t port);
  ~EchoServer();

 private:
  void Serve(std::stop_token stop);
  std::string name_;
  UniqueFd listener_;
  std::jthread thread_;
};

// Answers every datagram with its name.
class UdpServer {
 public:
  UdpServer(std::string name, const linux::NetNs& netns, const IpAddress& ip, uint16_t port);
  ~UdpServer();

 private:
  std::string name_;
  UniqueFd socket_;
  std::jthread thread_;
};

// One socket, so one source port: what connection tracking takes for one connection.
class UdpClient {
 public:
  explicit UdpClient(const linux::NetNs& from);
  // Who answers; empty after `limit` of silence.
  std::string Ask(const IpAddress& ip, uint16_t port,
                  std::chrono::milliseconds limit = std::chrono::seconds(2));

 private:
  UniqueFd socket_;
};

class Connection {
 public:
  // Errors carry errno: ECONNREFUSED, ETIMEDOUT after `limit`.
  static Result<Connection> Open(const linux::NetNs& from, const IpAddress& ip, uint16_t port,
                                 std::chrono::milliseconds limit = std::chrono::seconds(5));
  const std::string& server() const { return server_; }
  const std::string& seen_as() const { return seen_as_; }  // our address as the server sees it
  bool Echoes();                                           // still alive in both directions?

 private:
  UniqueFd fd_;
  std::string server_, seen_as_;
};

// client 172.30.0.2, fd30::2 (also .9) --- 172.30.0.1, fd30::1 node 10.1.0.254, fd01::fe (br0) ---
// pods 10.1.0.1, 10.1.0.2, fd01::1, fd01::2
//                                                                node 172.31.0.1, fd31::1 ---
// remote, a pod elsewhere: 10.2.0.1, fd02::1 (behind 172.31.0.2, fd31::2)
struct World {
  static Result<std::unique_ptr<World>> Make();
  linux::NetNs node, client, pod1, pod2, remote;
};

}  // namespace keelson::proxy
