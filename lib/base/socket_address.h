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

inline IpAddress AddressOf(const sockaddr_storage& name) {
  const bool v4 = name.ss_family == AF_INET;
  const void* bytes = v4 ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in&>(name).sin_addr)
                         : &reinterpret_cast<const sockaddr_in6&>(name).sin6_addr;
  return IpAddress::FromBytes({static_cast<const char*>(bytes), v4 ? 4u : 16u});
}

}  // namespace keelson::proxy::dns
