#include <cstring>

#include "lib/nft/trace_values_internal.h"

namespace keelson::nft {
namespace {

constexpr uint32_t kCtStateNew = 8, kCtStatusDnat = 0x20, kCtStatusSnat = 0x10;

}  // namespace

std::string_view Registers::Get(int reg, size_t size) const {
  size_t at = static_cast<size_t>(reg) * 4;
  if (reg < 0 || at + size > bytes_.size()) return {};
  return {bytes_.data() + at, size};
}

void Registers::Put(int reg, std::string_view bytes) {
  size_t at = static_cast<size_t>(reg) * 4, padded = (bytes.size() + 3) / 4 * 4;
  if (reg < 0 || at + padded > bytes_.size()) return;
  std::memset(bytes_.data() + at, 0, padded);
  std::memcpy(bytes_.data() + at, bytes.data(), bytes.size());
}

const Element* FindElement(const Ruleset::SetContents& set, std::string_view key) {
  if (!set.set.interval) {
    auto found = set.elements.find(std::string(key));
    return found == set.elements.end() ? nullptr : &found->second;
  }
  for (const auto& [begin, element] : set.elements) {
    if (begin.size() != key.size() || element.key_end.size() != key.size()) continue;
    bool inside = true;
    size_t at = 0;
    for (Type type : set.set.key) {
      size_t size = SizeOf(type);
      std::string_view part = key.substr(at, size);
      inside = inside && part >= std::string_view(begin).substr(at, size) &&
               part <= std::string_view(element.key_end).substr(at, size);
      at += (size + 3) / 4 * 4;
    }
    if (inside) return &element;
  }
  return nullptr;
}

std::string FieldBytes(Field field, const Packet& packet, const AddressTypeOf& address_type) {
  switch (field) {
    case Field::kIpSaddr:
    case Field::kIp6Saddr:
      return std::string(packet.source.bytes());
    case Field::kIpDaddr:
    case Field::kIp6Daddr:
      return std::string(packet.destination.bytes());
    case Field::kL4Proto:
      return Key().Proto(packet.protocol).bytes();
    case Field::kSourcePort:
      return Key().Port(packet.source_port).bytes();
    case Field::kDestinationPort:
      return Key().Port(packet.destination_port).bytes();
    case Field::kNfProto:
      return Key().Proto(static_cast<uint8_t>(packet.source.is_v4() ? Family::kIpv4 : Family::kIpv6)).bytes();
    case Field::kMark:
      return Key().Mark(packet.mark).bytes();
    case Field::kCtState:
      return Key().Mark(kCtStateNew).bytes();
    case Field::kCtStatus:
      return Key()
          .Mark((packet.translated ? kCtStatusDnat : 0) | (packet.source_translated ? kCtStatusSnat : 0))
          .bytes();
    case Field::kCtOriginalDaddr:
    case Field::kCtOriginal6Daddr:
      return std::string(packet.translated ? packet.first_destination.bytes() : packet.destination.bytes());
    case Field::kDaddrType:
      return Key().Mark(address_type(packet.destination)).bytes();
    case Field::kSaddrType:
      return Key().Mark(address_type(packet.source)).bytes();
    case Field::kIifName:
      return Key().Ifname(packet.in_link).bytes();
    case Field::kEtherSaddr:
      return std::string(6, '\0');
    case Field::kEtherType:
      return packet.source.is_v4() ? std::string("\x08\x00", 2) : std::string("\x86\xdd", 2);
    case Field::kIcmpType:
      return std::string(1, '\0');
  }
  return {};
}

}  // namespace keelson::nft
