// For tests: packets of TCP, UDP and ICMP errors as they are on a wire, with right checksums.
#pragma once

#include <cstdint>
#include <string>

#include "lib/base/ip.h"
#include "proxy/model/service_port.h"

namespace keelson::proxy::ebpf {

enum TcpFlags : uint8_t { kFin = 1, kSyn = 2, kRst = 4, kAck = 16 };

struct WirePacket {
  IpAddress source, destination;
  uint16_t source_port = 0, destination_port = 0;
  uint8_t protocol = kTcp;
  uint8_t tcp_flags = kAck;
  std::string payload = "hello";
  bool checksum = true;  // of UDP over IPv4 there may be none
  uint8_t hops = 64;     // that it may still go
  std::string options;   // of IPv4; of IPv6 an extension header for the destination

  // From the IP header on.
  std::string Ip() const;
  // With Ethernet's header, for who takes it.
  std::string Frame() const;
};

struct WireError {
  IpAddress source, destination;
  uint8_t type = 0;  // 0: that the destination cannot be reached
  std::string quoted;

  std::string Frame() const;
};

// An IP header and what it carries; `options` as in WirePacket.
std::string IpPacket(const IpAddress& source, const IpAddress& destination, uint8_t protocol,
                     const std::string& payload, uint8_t hops = 64, const std::string& options = "");
// Ethernet's header before an IP packet.
std::string FrameOf(const std::string& ip);

}  // namespace keelson::proxy::ebpf
