// Keys and values of eBPF maps (ebpf_maps.h) from addresses, and back. Pure.
#pragma once

#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "lib/base/ip.h"
#include "lib/dataplane/addresses.h"
#include "lib/dataplane/ebpf_maps.h"

namespace keelson::dataplane {

// A key or value as the kernel takes it.
template <typename T>
std::string BytesOf(const T& value) {
  static_assert(std::is_trivially_copyable_v<T>);
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

// A key or value as the kernel gives it; nullopt: `bytes` are of another size.
template <typename T>
std::optional<T> FromBytes(std::string_view bytes) {
  static_assert(std::is_trivially_copyable_v<T>);
  if (bytes.size() != sizeof(T)) return std::nullopt;
  T out;
  std::memcpy(&out, bytes.data(), sizeof out);
  return out;
}

// The value of maps that are sets: it says nothing.
inline constexpr __u8 kPresent = 1;

// IPv4 as ::ffff:a.b.c.d.
void EncodeIp(const IpAddress& ip, __u32 (&out)[4]);
IpAddress DecodeIp(const __u32 (&ip)[4]);

ServiceKey Encode(const ServiceAddress& address);
ServiceAddress Decode(const ServiceKey& key);

Endpoint Encode(const EndpointAddress& address);
EndpointAddress Decode(const Endpoint& endpoint);

// Keys of tries. Host bits of `cidr` are cleared.
PodCidrKey EncodePodCidr(const IpPrefix& cidr);
IpPrefix Decode(const PodCidrKey& key);

SourceRangeKey EncodeSourceRange(const ServiceKey& service, const IpPrefix& range);
// The range; key.service says whose it is.
IpPrefix DecodeRange(const SourceRangeKey& key);

}  // namespace keelson::dataplane
