// An address and port in the form that the socket calls take and fill in.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstring>

#include "lib/base/ip.h"

namespace keelson {

inline IpAddress AddressOf(const sockaddr_storage& name) {
  const bool v4 = name.ss_family == AF_INET;
  const void* bytes = v4 ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in&>(name).sin_addr)
                         : &reinterpret_cast<const sockaddr_in6&>(name).sin6_addr;
  return IpAddress::FromBytes({static_cast<const char*>(bytes), v4 ? 4u : 16u});
}

class SocketAddress {
 public:
  SocketAddress() = default;  // for a call that fills it in
  SocketAddress(const IpAddress& ip, uint16_t port) {
    if (ip.is_v4()) {
      auto* out = reinterpret_cast<sockaddr_in*>(&storage_);
      out->sin_family = AF_INET;
      out->sin_port = htons(port);
      std::memcpy(&out->sin_addr, ip.bytes().data(), 4);
      size_ = sizeof *out;
    } else {
      auto* out = reinterpret_cast<sockaddr_in6*>(&storage_);
      out->sin6_family = AF_INET6;
      out->sin6_port = htons(port);
      std::memcpy(&out->sin6_addr, ip.bytes().data(), 16);
      size_ = sizeof *out;
    }
  }

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage_); }
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage_); }
  socklen_t size() const { return size_; }
  socklen_t* filled() { return &size_; }  // for a call to write the filled-in size to
  IpAddress ip() const { return AddressOf(storage_); }
  // The IP address, with an IPv4-mapped IPv6 address (from a dual-stack socket) as IPv4: ::ffff:10.0.0.1 is
  // 10.0.0.1.
  IpAddress UnmappedIp() const {
    const IpAddress out = ip();
    auto* v6 = reinterpret_cast<const sockaddr_in6*>(&storage_);
    if (out.is_v4() || !IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr)) return out;
    return IpAddress::FromBytes(out.bytes().substr(12));
  }

 private:
  sockaddr_storage storage_{};
  socklen_t size_ = sizeof(sockaddr_storage);
};

}  // namespace keelson
