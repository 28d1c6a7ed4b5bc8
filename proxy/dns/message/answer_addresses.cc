#include "proxy/dns/message/answer_addresses.h"

#include <algorithm>
#include <cstdint>
#include <optional>

#include "proxy/dns/message/message.h"

namespace keelson::proxy::dns {
namespace {

constexpr uint16_t kRcodeBits = 0x000F;
constexpr size_t kRecordHeader = 10;      // type, class, TTL and size of the data
constexpr int kMaxChain = 16;             // CNAME records
constexpr uint32_t kMaxTtl = 0x7FFFFFFF;  // RFC 2181, 8: larger ones are zero

// Reads the name at `at`, decompressed and in lower case, and moves `at` behind it. Nullopt: malformed.
std::optional<Name> TakeName(std::string_view packet, size_t& at) {
  Name out;
  size_t read = at;
  bool jumped = false;
  while (read < packet.size()) {
    const size_t label = static_cast<uint8_t>(packet[read]);
    if (label >= 0xC0) {
      if (read + 2 > packet.size()) return std::nullopt;
      const size_t target = Get16(packet, read) & 0x3FFFu;
      if (target >= read) return std::nullopt;  // only back: so it ends
      if (!jumped) at = read + 2;
      jumped = true;
      read = target;
      continue;
    }
    if (label > kMaxLabelSize || read + 1 + label > packet.size() || out.size() + 1 + label > kMaxNameSize) {
      return std::nullopt;
    }
    out += static_cast<char>(label);
    for (char c : packet.substr(read + 1, label)) out += Lower(c);
    read += 1 + label;
    if (label > 0) continue;
    if (!jumped) at = read;
    return out;
  }
  return std::nullopt;
}

struct Record {
  Name owner;
  uint16_t type = 0;
  std::chrono::seconds ttl{0};
  IpAddress address;  // A, AAAA
  Name target;        // CNAME
};

// Nullopt: malformed.
std::optional<Record> TakeRecord(std::string_view packet, size_t& at) {
  Record out;
  std::optional<Name> owner = TakeName(packet, at);
  if (!owner || at + kRecordHeader > packet.size()) return std::nullopt;
  out.owner = std::move(*owner);
  out.type = Get16(packet, at);
  const uint32_t ttl = static_cast<uint32_t>(Get16(packet, at + 4)) << 16 | Get16(packet, at + 6);
  out.ttl = std::chrono::seconds(ttl > kMaxTtl ? 0 : ttl);
  const bool internet = Get16(packet, at + 2) == kClassIn;
  const size_t size = Get16(packet, at + 8);
  at += kRecordHeader;
  if (at + size > packet.size()) return std::nullopt;
  const std::string_view data = packet.substr(at, size);
  if (!internet) {
    out.type = 0;
  } else if (out.type == kTypeA || out.type == kTypeAaaa) {
    if (size != (out.type == kTypeA ? 4u : 16u)) return std::nullopt;
    out.address = IpAddress::FromBytes(data);
  } else if (out.type == kTypeCname) {
    size_t inside = at;
    std::optional<Name> target = TakeName(packet, inside);
    if (!target || inside != at + size) return std::nullopt;
    out.target = std::move(*target);
  }
  at += size;
  return out;
}

}  // namespace

AnswerAddresses AddressesIn(std::string_view answer) {
  if (answer.size() < kHeaderSize || (Get16(answer, 2) & kRcodeBits) != 0 || Get16(answer, 4) != 1) return {};
  size_t at = kHeaderSize;
  std::optional<Name> name = TakeName(answer, at);
  if (!name || at + 4 > answer.size()) return {};
  const uint16_t type = Get16(answer, at);
  if ((type != kTypeA && type != kTypeAaaa) || Get16(answer, at + 2) != kClassIn) return {};
  at += 4;
  std::vector<Record> records;
  for (int left = Get16(answer, 6); left > 0; --left) {
    std::optional<Record> record = TakeRecord(answer, at);
    if (!record) return {};
    if (record->type == type || record->type == kTypeCname) records.push_back(std::move(*record));
  }
  AnswerAddresses out{.name = *name, .entries = {}};
  std::chrono::seconds ttl{kMaxTtl};
  Name owner = std::move(*name);
  for (int i = 0; i < kMaxChain; ++i) {
    const Record* alias = nullptr;
    for (const Record& record : records) {
      if (record.owner != owner) continue;
      if (record.type == type) out.entries.push_back({record.address, std::min(ttl, record.ttl)});
      if (record.type == kTypeCname && !alias) alias = &record;
    }
    if (!out.entries.empty() || !alias) break;
    ttl = std::min(ttl, alias->ttl);
    owner = alias->target;
  }
  return out;
}

}  // namespace keelson::proxy::dns
