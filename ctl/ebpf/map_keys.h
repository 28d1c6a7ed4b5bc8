// What keys and values of mode ebpf's maps are made of (proxy/ebpf/bpf/maps.h).
#pragma once

#include <arpa/inet.h>

#include <compare>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "lib/base/ip.h"

namespace keelson::ctl {

// Where clients connect to.
struct Vip {
  std::optional<IpAddress> ip;  // nullopt: a NodePort
  uint8_t protocol = 0;         // 0, as the port: whatever else is asked for at a cluster IP
  uint16_t port = 0;
  auto operator<=>(const Vip&) const = default;
};

struct Target {
  IpAddress ip;
  uint16_t port = 0;
  auto operator<=>(const Target&) const = default;
};

// Reads a key or a value from its front.
class MapReader {
 public:
  explicit MapReader(std::string_view bytes) : bytes_(bytes) {}

  template <typename T>
  T Number() {
    T out{};
    std::memcpy(&out, Take(sizeof out).data(), sizeof out);
    return out;
  }
  uint16_t Port() { return ntohs(Number<uint16_t>()); }
  IpAddress Ip() {
    const std::string_view bytes = Take(16);
    constexpr std::string_view kMapped("\0\0\0\0\0\0\0\0\0\0\xff\xff", 12);
    return IpAddress::FromBytes(bytes.starts_with(kMapped) ? bytes.substr(12) : bytes);
  }
  Vip ReadVip() {
    Vip out{.ip = Ip()};
    if (*out.ip == IpAddress::FromBytes(std::string(16, '\xff'))) out.ip.reset();
    out.port = Port();
    out.protocol = Number<uint8_t>();
    Take(1);
    return out;
  }
  Target ReadTarget() {
    Target out{.ip = Ip(), .port = Port()};
    Take(2);
    return out;
  }
  std::string_view Take(size_t size) {
    const std::string_view out = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return out;
  }

 private:
  std::string_view bytes_;
};

}  // namespace keelson::ctl
