#include "lib/dataplane/ebpf_codec.h"

#include <arpa/inet.h>

namespace keelson::dataplane {
namespace {

constexpr __u32 kServiceBits = 8 * sizeof(ServiceKey);
// Of ::ffff:a.b.c.d, before the IPv4 address.
constexpr int kMappedBits = 96;

IpPrefix DecodePrefix(const __u32 (&ip)[4], __u32 bits) {
  const IpAddress address = DecodeIp(ip);
  return {address, static_cast<int>(bits) - (address.is_v4() ? kMappedBits : 0)};
}

}  // namespace

void EncodeIp(const IpAddress& ip, __u32 (&out)[4]) {
  if (ip.is_v4()) {
    out[0] = out[1] = 0;
    out[2] = htonl(0xffff);
    std::memcpy(&out[3], ip.bytes().data(), 4);
  } else {
    std::memcpy(out, ip.bytes().data(), sizeof out);
  }
}

IpAddress DecodeIp(const __u32 (&ip)[4]) {
  const std::string_view bytes(reinterpret_cast<const char*>(ip), sizeof ip);
  const bool mapped = ip[0] == 0 && ip[1] == 0 && ip[2] == htonl(0xffff);
  return IpAddress::FromBytes(mapped ? bytes.substr(12) : bytes);
}

ServiceKey Encode(const ServiceAddress& address) {
  ServiceKey out{.ip = {}, .port = htons(address.port), .protocol = address.protocol, .zero = 0};
  if (address.ip) {
    EncodeIp(*address.ip, out.ip);
  } else {
    std::memset(out.ip, 0xff, sizeof out.ip);
  }
  return out;
}

ServiceAddress Decode(const ServiceKey& key) {
  ServiceAddress out{.ip = std::nullopt, .protocol = key.protocol, .port = ntohs(key.port)};
  constexpr __u32 kAll = 0xffffffff;
  const bool node_port = key.ip[0] == kAll && key.ip[1] == kAll && key.ip[2] == kAll && key.ip[3] == kAll;
  if (!node_port) out.ip = DecodeIp(key.ip);
  return out;
}

Endpoint Encode(const EndpointAddress& address) {
  Endpoint out{.ip = {}, .port = htons(address.port), .zero = 0};
  EncodeIp(address.ip, out.ip);
  return out;
}

EndpointAddress Decode(const Endpoint& endpoint) {
  return {.ip = DecodeIp(endpoint.ip), .port = ntohs(endpoint.port)};
}

PodCidrKey EncodePodCidr(const IpPrefix& cidr) {
  PodCidrKey out{.bits = static_cast<__u32>(cidr.length() + (cidr.is_v4() ? kMappedBits : 0)), .ip = {}};
  EncodeIp(cidr.Network(), out.ip);
  return out;
}

IpPrefix Decode(const PodCidrKey& key) { return DecodePrefix(key.ip, key.bits); }

SourceRangeKey EncodeSourceRange(const ServiceKey& service, const IpPrefix& range) {
  const PodCidrKey ip = EncodePodCidr(range);
  SourceRangeKey out{.bits = kServiceBits + ip.bits, .service = service, .ip = {}};
  std::memcpy(out.ip, ip.ip, sizeof out.ip);
  return out;
}

IpPrefix DecodeRange(const SourceRangeKey& key) { return DecodePrefix(key.ip, key.bits - kServiceBits); }

}  // namespace keelson::dataplane
