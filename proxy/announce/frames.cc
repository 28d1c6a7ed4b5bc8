#include "proxy/announce/frames.h"

#include <array>
#include <cstdint>

namespace keelson::proxy {
namespace {

using netlink::MacAddress;

constexpr size_t kEthernet = 14, kIpv6 = 40, kMac = 6;
constexpr uint16_t kTypeArp = 0x0806, kTypeIpv6 = 0x86dd;
constexpr uint16_t kRequest = 1, kReply = 2;
constexpr size_t kArp = 28;  // Ethernet and IPv4
constexpr uint8_t kIcmpv6 = 58, kSolicitation = 135, kAdvertisement = 136;
constexpr uint8_t kSourceLink = 1, kTargetLink = 2;  // options
constexpr uint32_t kSolicited = 0x40000000, kOverride = 0x20000000;

uint16_t Read16(std::string_view bytes, size_t at) {
  return static_cast<uint16_t>(static_cast<uint8_t>(bytes[at]) << 8 | static_cast<uint8_t>(bytes[at + 1]));
}
void Write16(std::string& out, uint16_t value) {
  out += static_cast<char>(value >> 8);
  out += static_cast<char>(value & 0xff);
}
void Write32(std::string& out, uint32_t value) {
  Write16(out, static_cast<uint16_t>(value >> 16));
  Write16(out, static_cast<uint16_t>(value & 0xffff));
}
MacAddress MacAt(std::string_view bytes, size_t at) {
  std::array<uint8_t, kMac> mac;
  for (size_t i = 0; i < kMac; ++i) mac[i] = static_cast<uint8_t>(bytes[at + i]);
  return MacAddress(mac);
}
std::string Text(const MacAddress& mac) {
  return std::string(reinterpret_cast<const char*>(mac.bytes().data()), kMac);
}
const MacAddress kEverybody({0xff, 0xff, 0xff, 0xff, 0xff, 0xff});

std::string Ethernet(const MacAddress& to, const MacAddress& from, uint16_t type) {
  std::string out = Text(to) + Text(from);
  Write16(out, type);
  return out;
}

// Of an ICMPv6 message, with the pseudo header (RFC 8200, 8.1); zero over a message that holds its own.
uint16_t Checksum(const IpAddress& from, const IpAddress& to, std::string_view message) {
  std::string all = std::string(from.bytes()) + std::string(to.bytes());
  Write32(all, static_cast<uint32_t>(message.size()));
  Write32(all, kIcmpv6);
  all += message;
  if (all.size() % 2) all += '\0';
  uint32_t sum = 0;
  for (size_t i = 0; i < all.size(); i += 2) sum += Read16(all, i);
  while (sum >> 16) sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<uint16_t>(~sum);
}

std::string ArpFrame(uint16_t operation, const MacAddress& to, const MacAddress& mac, const IpAddress& ip,
                     const MacAddress& target_mac, const IpAddress& target) {
  std::string out = Ethernet(to, mac, kTypeArp);
  Write16(out, 1);       // Ethernet
  Write16(out, 0x0800);  // IPv4
  out += static_cast<char>(kMac);
  out += static_cast<char>(4);
  Write16(out, operation);
  return out + Text(mac) + std::string(ip.bytes()) + Text(target_mac) + std::string(target.bytes());
}

std::string AdvertisementFrame(const IpAddress& address, const MacAddress& mac, const IpAddress& to,
                               const MacAddress& to_mac, uint32_t flags) {
  std::string message;
  message += static_cast<char>(kAdvertisement);
  message.append(3, '\0');  // code, checksum
  Write32(message, flags);
  message += address.bytes();
  message += static_cast<char>(kTargetLink);
  message += static_cast<char>(1);  // in units of eight bytes
  message += Text(mac);
  std::string sum;
  Write16(sum, Checksum(address, to, message));
  message.replace(2, 2, sum);

  std::string out = Ethernet(to_mac, mac, kTypeIpv6);
  Write32(out, 6u << 28);
  Write16(out, static_cast<uint16_t>(message.size()));
  out += static_cast<char>(kIcmpv6);
  out += static_cast<char>(255);
  return out + std::string(address.bytes()) + std::string(to.bytes()) + message;
}

bool IsArp(std::string_view arp) {
  return arp.size() >= kArp && Read16(arp, 0) == 1 && Read16(arp, 2) == 0x0800 && arp[4] == kMac &&
         arp[5] == 4;
}

std::optional<NeighborQuestion> ParseArp(std::string_view arp) {
  if (!IsArp(arp) || Read16(arp, 6) != kRequest) return std::nullopt;
  return NeighborQuestion{.target = IpAddress::FromBytes(arp.substr(24, 4)),
                          .asker = IpAddress::FromBytes(arp.substr(14, 4)),
                          .asker_mac = MacAt(arp, 8)};
}

// A message of neighbour discovery: its type, who sends it, what address it is about, and the link address
// that it tells, if it does.
struct Discovery {
  uint8_t type;
  IpAddress from, target;
  std::optional<MacAddress> mac;
};

std::optional<Discovery> ParseDiscovery(std::string_view packet) {
  if (packet.size() < kIpv6 + 24) return std::nullopt;
  const size_t length = Read16(packet, 4);
  if (static_cast<uint8_t>(packet[6]) != kIcmpv6 || static_cast<uint8_t>(packet[7]) != 255) {
    return std::nullopt;  // from behind a router, where no neighbour is
  }
  if (length < 24 || packet.size() < kIpv6 + length) return std::nullopt;
  const std::string_view message = packet.substr(kIpv6, length);
  if (message[1] != 0) return std::nullopt;
  const IpAddress from = IpAddress::FromBytes(packet.substr(8, 16));
  if (Checksum(from, IpAddress::FromBytes(packet.substr(24, 16)), message) != 0) return std::nullopt;
  Discovery out{.type = static_cast<uint8_t>(message[0]),
                .from = from,
                .target = IpAddress::FromBytes(message.substr(8, 16)),
                .mac = std::nullopt};
  for (size_t at = 24; at + 8 <= message.size();) {
    const size_t size = 8 * static_cast<uint8_t>(message[at + 1]);
    if (size == 0 || at + size > message.size()) return std::nullopt;
    const uint8_t option = static_cast<uint8_t>(message[at]);
    if (option == (out.type == kSolicitation ? kSourceLink : kTargetLink)) out.mac = MacAt(message, at + 2);
    at += size;
  }
  return out;
}

IpAddress AllNodes() { return *IpAddress::Parse("ff02::1"); }

}  // namespace

std::optional<NeighborQuestion> ParseQuestion(std::string_view frame) {
  if (frame.size() < kEthernet) return std::nullopt;
  const uint16_t type = Read16(frame, 12);
  if (type == kTypeArp) return ParseArp(frame.substr(kEthernet));
  if (type != kTypeIpv6) return std::nullopt;
  auto message = ParseDiscovery(frame.substr(kEthernet));
  if (!message || message->type != kSolicitation) return std::nullopt;
  return NeighborQuestion{.target = message->target,
                          .asker = message->from,
                          .asker_mac = message->mac.value_or(MacAt(frame, kMac))};
}

std::optional<NeighborClaim> ParseClaim(std::string_view frame) {
  if (frame.size() < kEthernet) return std::nullopt;
  const uint16_t type = Read16(frame, 12);
  if (type == kTypeArp) {
    const std::string_view arp = frame.substr(kEthernet);
    if (!IsArp(arp)) return std::nullopt;
    return NeighborClaim{.address = IpAddress::FromBytes(arp.substr(14, 4)), .mac = MacAt(arp, 8)};
  }
  if (type != kTypeIpv6) return std::nullopt;
  auto message = ParseDiscovery(frame.substr(kEthernet));
  if (!message || message->type != kAdvertisement) return std::nullopt;
  return NeighborClaim{.address = message->target, .mac = message->mac.value_or(MacAt(frame, kMac))};
}

std::string AnswerTo(const NeighborQuestion& question, const MacAddress& mac) {
  if (question.target.is_v4()) {
    return ArpFrame(kReply, question.asker_mac, mac, question.target, question.asker_mac, question.asker);
  }
  // A node without an address gets multicast only.
  if (question.asker.IsUnspecified()) return Announcement(question.target, mac, false);
  return AdvertisementFrame(question.target, mac, question.asker, question.asker_mac, kSolicited | kOverride);
}

std::string Announcement(const IpAddress& address, const MacAddress& mac, bool request) {
  if (address.is_v4()) {
    return request ? ArpFrame(kRequest, kEverybody, mac, address, MacAddress(), address)
                   : ArpFrame(kReply, kEverybody, mac, address, kEverybody, address);
  }
  return AdvertisementFrame(address, mac, AllNodes(), MulticastMac(AllNodes()), kOverride);
}

IpAddress SolicitedNodeAddress(const IpAddress& address) {
  std::string bytes(IpAddress::Parse("ff02::1:ff00:0")->bytes());
  bytes.replace(13, 3, address.bytes().substr(13, 3));
  return IpAddress::FromBytes(bytes);
}

MacAddress MulticastMac(const IpAddress& address) {
  std::array<uint8_t, kMac> mac = {0x33, 0x33};
  for (size_t i = 0; i < 4; ++i) mac[2 + i] = static_cast<uint8_t>(address.bytes()[12 + i]);
  return MacAddress(mac);
}

}  // namespace keelson::proxy
