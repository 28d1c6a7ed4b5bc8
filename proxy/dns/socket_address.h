// An address and port as the socket calls take them.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstring>

#include "lib/base/ip.h"

namespace keelson::proxy::dns {

class SocketAddress {
 public:
  SocketAddress(const IpAddress& ip, uint16_t port) : v4_(ip.is_v4()) {
    if (v4_) {
      auto* out = reinterpret_cast<sockaddr_in*>(&storage_);
      out->sin_family = AF_INET;
      out->sin_port = htons(port);
      std::memcpy(&out->sin_addr, ip.bytes().data(), 4);
    } else {
      auto* out = reinterpret_cast<sockaddr_in6*>(&storage_);
      out->sin6_family = AF_INET6;
      out->sin6_port = htons(port);
      std::memcpy(&out->sin6_addr, ip.bytes().data(), 16);
    }
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage_); }
  socklen_t size() const { return v4_ ? sizeof(sockaddr_in) : sizeof(sockaddr_in6); }

 private:
  sockaddr_storage storage_{};
  bool v4_;
};

}  // namespace keelson::proxy::dns
