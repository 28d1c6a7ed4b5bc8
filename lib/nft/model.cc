#include "lib/nft/model.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "lib/nft/text.h"

namespace keelson::nft {
namespace {

std::string HostBytes(uint32_t value) { return {reinterpret_cast<const char*>(&value), sizeof value}; }

size_t Padded(size_t size) { return (size + 3) / 4 * 4; }

constexpr int kScratch = 15;

}  // namespace

size_t SizeOf(Type type) {
  switch (type) {
    case Type::kIpv4Addr:
    case Type::kMark:
      return 4;
    case Type::kIpv6Addr:
      return 16;
    case Type::kInetProto:
      return 1;
    case Type::kInetService:
      return 2;
    case Type::kIfname:
      return 16;
    case Type::kEtherAddr:
      return 6;
  }
  return 0;
}

size_t WidthOf(const std::vector<Type>& types) {
  if (types.size() == 1) return SizeOf(types[0]);
  size_t width = 0;
  for (Type type : types) width += Padded(SizeOf(type));
  return width;
}

void Key::Append(std::string_view bytes) {
  bytes_.append(bytes);
  bytes_.append(Padded(bytes.size()) - bytes.size(), '\0');
  unpadded_ = bytes.size();
  ++parts_;
}

Key& Key::Ip(const IpAddress& address) {
  Append(address.bytes());
  return *this;
}
Key& Key::Proto(uint8_t protocol) {
  Append({reinterpret_cast<const char*>(&protocol), 1});
  return *this;
}
Key& Key::Port(uint16_t port) {
  uint16_t network = htons(port);
  Append({reinterpret_cast<const char*>(&network), 2});
  return *this;
}
Key& Key::Mark(uint32_t mark) {
  Append(HostBytes(mark));
  return *this;
}
Key& Key::Ifname(std::string_view name) {
  std::string padded(name.substr(0, SizeOf(Type::kIfname) - 1));
  padded.resize(SizeOf(Type::kIfname));
  Append(padded);
  return *this;
}
Key& Key::EtherAddr(std::string_view address) {
  Append(address);
  return *this;
}
std::string Key::bytes() const { return parts_ == 1 ? bytes_.substr(0, unpadded_) : bytes_; }

int RegistersOf(Field field) {
  switch (field) {
    case Field::kIp6Saddr:
    case Field::kIp6Daddr:
    case Field::kCtOriginal6Daddr:
    case Field::kIifName:
      return 4;
    case Field::kEtherSaddr:
      return 2;
    default:
      return 1;
  }
}

Rule& Rule::AnyBit(Field field, uint32_t bits) {
  return Load(kScratch, field).Mask(kScratch, HostBytes(bits), HostBytes(0)).NotEqual(kScratch, HostBytes(0));
}
Rule& Rule::MarkBits(uint32_t bits) {
  return Load(kScratch, Field::kMark).Mask(kScratch, HostBytes(~bits), HostBytes(bits)).SetMark(kScratch);
}
Rule& Rule::UnmarkBits(uint32_t bits) {
  return Load(kScratch, Field::kMark).Mask(kScratch, HostBytes(~bits), HostBytes(0)).SetMark(kScratch);
}

std::string Rule::Fingerprint() const {
  if (!found_.empty()) return found_;
  uint64_t hash = 14695981039346656037u;  // FNV-1a
  for (unsigned char c : ToText(*this)) hash = (hash ^ c) * 1099511628211u;
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash));
  return text;
}

std::string Rule::Comment() const {
  constexpr size_t kLongest = 127;  // of nft(8)'s comments, NFTNL_UDATA_COMMENT_MAXLEN
  std::string out = Fingerprint();
  if (!note_.empty()) out += " " + note_;
  if (out.size() <= kLongest) return out;
  out.resize(kLongest - 3);
  return out + "...";
}

void Rule::set_found_comment(const std::string& comment) {
  size_t end = std::min(comment.find(' '), comment.size());
  found_ = comment.substr(0, end);
  if (end < comment.size()) note_ = comment.substr(end + 1);
}

}  // namespace keelson::nft
