#include "proxy/ebpf/testing/packet.h"

namespace keelson::proxy::ebpf {
namespace {

constexpr uint8_t kIcmp = 1, kIcmp6 = 58, kDestinationOptions = 60;

std::string Number(uint32_t value, int bytes) {
  std::string out;
  for (int i = bytes - 1; i >= 0; --i) out += static_cast<char>(value >> (8 * i));
  return out;
}

// Of RFC 1071.
uint16_t Checksum(const std::string& bytes) {
  uint32_t sum = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    sum += static_cast<uint32_t>(static_cast<uint8_t>(bytes[i])) << (i % 2 == 0 ? 8 : 0);
  }
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<uint16_t>(~sum);
}

std::string Pseudo(const IpAddress& source, const IpAddress& destination, uint8_t protocol, size_t size) {
  return std::string(source.bytes()) + std::string(destination.bytes()) +
         Number(static_cast<uint32_t>(size), 4) + Number(protocol, 4);
}

}  // namespace

std::string IpPacket(const IpAddress& source, const IpAddress& destination, uint8_t protocol,
                     const std::string& payload, uint8_t hops, const std::string& options) {
  const std::string addresses = std::string(source.bytes()) + std::string(destination.bytes());
  if (!source.is_v4()) {
    return Number(0x60000000, 4) + Number(static_cast<uint32_t>(options.size() + payload.size()), 2) +
           Number(options.empty() ? protocol : kDestinationOptions, 1) + Number(hops, 1) + addresses +
           options + payload;
  }
  const auto size = static_cast<uint32_t>(20 + options.size());
  std::string header = Number(0x4000 | size / 4 << 8, 2) +
                       Number(static_cast<uint32_t>(size + payload.size()), 2) + Number(0x12344000, 4) +
                       Number(hops, 1) + Number(protocol, 1) + Number(0, 2) + addresses + options;
  header.replace(10, 2, Number(Checksum(header), 2));
  return header + payload;
}

std::string FrameOf(const std::string& ip) {
  const bool v4 = !ip.empty() && (ip[0] >> 4) == 4;
  return std::string(12, '\0') + (v4 ? Number(0x0800, 2) : Number(0x86dd, 2)) + ip;
}

std::string WirePacket::Ip() const {
  std::string body = Number(source_port, 2) + Number(destination_port, 2);
  size_t at = 6;
  if (protocol == kUdp) {
    body += Number(static_cast<uint32_t>(8 + payload.size()), 2) + Number(0, 2);
  } else {
    at = 16;
    body += Number(1000, 4) + Number(2000, 4) + Number(0x50, 1) + Number(tcp_flags, 1) + Number(4096, 2) +
            Number(0, 4);
  }
  body += payload;
  if (checksum) {
    uint16_t sum = Checksum(Pseudo(source, destination, protocol, body.size()) + body);
    if (sum == 0 && protocol == kUdp) sum = 0xffff;
    body.replace(at, 2, Number(sum, 2));
  }
  return IpPacket(source, destination, protocol, body, hops, options);
}

std::string WirePacket::Frame() const { return FrameOf(Ip()); }

std::string WireError::Frame() const {
  const bool v4 = source.is_v4();
  std::string body = Number(type != 0 ? type : v4 ? 3 : 1, 1) + Number(v4 ? 3 : 4, 1) + Number(0, 6) + quoted;
  const std::string covered = (v4 ? "" : Pseudo(source, destination, kIcmp6, body.size())) + body;
  body.replace(2, 2, Number(Checksum(covered), 2));
  return FrameOf(IpPacket(source, destination, v4 ? kIcmp : kIcmp6, body));
}

}  // namespace keelson::proxy::ebpf
