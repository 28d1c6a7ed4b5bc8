// A server for one connection on loopback: reads the request's head, writes the given pieces, and closes. Without
// Serve() it accepts connections and never answers.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <string>
#include <thread>
#include <vector>

#include "lib/base/fd.h"

namespace keelson::kubelet {

class OneShotServer {
 public:
  explicit OneShotServer(std::vector<std::string> pieces = {}) : pieces_(std::move(pieces)) {
    listener_.Reset(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    EXPECT_EQ(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::listen(listener_.get(), 16), 0);
    EXPECT_EQ(::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    port_ = ntohs(address.sin_port);
  }
  ~OneShotServer() {
    if (thread_.joinable()) thread_.join();
  }
  void Serve() {
    thread_ = std::thread([this] {
      UniqueFd peer(::accept(listener_.get(), nullptr, nullptr));
      char byte;
      while (heard_.find("\r\n\r\n") == std::string::npos && ::recv(peer.get(), &byte, 1, 0) == 1) {
        heard_ += byte;
      }
      for (const std::string& piece : pieces_) ::send(peer.get(), piece.data(), piece.size(), MSG_NOSIGNAL);
      ::shutdown(peer.get(), SHUT_WR);
      while (::recv(peer.get(), &byte, 1, 0) == 1) {
      }
    });
  }
  // The request's head, once the connection has ended.
  std::string Heard() {
    thread_.join();
    return heard_;
  }
  // Blocks until a client connects.
  UniqueFd Accept() { return UniqueFd(::accept(listener_.get(), nullptr, nullptr)); }
  int port() const { return port_; }
  void Close() { listener_.Reset(); }

 private:
  const std::vector<std::string> pieces_;
  UniqueFd listener_;
  int port_ = 0;
  std::string heard_;
  std::thread thread_;
};

}  // namespace keelson::kubelet
