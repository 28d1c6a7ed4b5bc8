// IP addresses and prefixes as values: parse, print, compare, arithmetic. No sockets, no resolving.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "lib/base/error.h"

namespace keelson {

// An IPv4 or IPv6 address, in network order. Default: 0.0.0.0. IPv4 sorts before IPv6.
class IpAddress {
 public:
  IpAddress() = default;
  // Accepts what Kubernetes and CNI accept: no zone, no octets with leading zeros. kInvalid otherwise.
  static Result<IpAddress> Parse(std::string_view text);
  // 4 or 16 bytes in network order; aborts on other sizes.
  static IpAddress FromBytes(std::string_view bytes);

  bool is_v4() const { return size_ == 4; }
  bool is_v6() const { return size_ == 16; }
  int bits() const { return size_ * 8; }
  std::string_view bytes() const { return {reinterpret_cast<const char*>(bytes_.data()), size_}; }

  bool IsLoopback() const;
  bool IsUnspecified() const;
  bool IsLinkLocal() const;  // 169.254.0.0/16, fe80::/10
  bool IsMulticast() const;

  // The address `by` places after this one; wraps within the family.
  IpAddress Plus(int64_t by) const;
  std::string ToString() const;  // RFC 5952

  auto operator<=>(const IpAddress&) const = default;

 private:
  uint8_t size_ = 4;
  std::array<uint8_t, 16> bytes_{};
};

// An address and a length. The address may have host bits (10.1.2.3/24), as interfaces carry it.
class IpPrefix {
 public:
  IpPrefix() = default;
  IpPrefix(IpAddress address, int length) : address_(address), length_(length) {}
  static Result<IpPrefix> Parse(std::string_view text);  // "10.0.0.0/8"; kInvalid otherwise
  static IpPrefix Host(IpAddress address) { return {address, address.bits()}; }

  const IpAddress& address() const { return address_; }
  int length() const { return length_; }
  bool is_v4() const { return address_.is_v4(); }

  IpAddress Network() const;  // host bits cleared
  IpAddress Last() const;     // host bits set: the broadcast address of an IPv4 subnet
  IpPrefix Masked() const { return {Network(), length_}; }
  bool Contains(const IpAddress& address) const;
  bool Overlaps(const IpPrefix& other) const;
  std::string ToString() const;

  auto operator<=>(const IpPrefix&) const = default;

 private:
  IpAddress address_;
  int length_ = 0;
};

}  // namespace keelson

template <>
struct std::hash<keelson::IpAddress> {
  size_t operator()(const keelson::IpAddress& a) const noexcept {
    return std::hash<std::string_view>()(a.bytes());
  }
};
