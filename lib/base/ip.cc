#include "lib/base/ip.h"

#include <arpa/inet.h>

#include <charconv>
#include <cstdlib>
#include <cstring>

namespace keelson {

Result<IpAddress> IpAddress::Parse(std::string_view text) {
  char buffer[INET6_ADDRSTRLEN + 1];
  IpAddress out;
  if (text.size() < sizeof buffer) {
    std::memcpy(buffer, text.data(), text.size());
    buffer[text.size()] = 0;
    if (inet_pton(AF_INET, buffer, out.bytes_.data()) == 1) return out;
    out.size_ = 16;
    if (inet_pton(AF_INET6, buffer, out.bytes_.data()) == 1) return out;
  }
  return Error(Code::kInvalid, "invalid IP address: " + std::string(text));
}

IpAddress IpAddress::FromBytes(std::string_view bytes) {
  if (bytes.size() != 4 && bytes.size() != 16) std::abort();
  IpAddress out;
  out.size_ = static_cast<uint8_t>(bytes.size());
  std::memcpy(out.bytes_.data(), bytes.data(), bytes.size());
  return out;
}

bool IpAddress::IsLoopback() const {
  if (is_v4()) return bytes_[0] == 127;
  static constexpr std::array<uint8_t, 16> kLoopback = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
  return bytes_ == kLoopback;
}

bool IpAddress::IsUnspecified() const { return bytes_ == std::array<uint8_t, 16>{}; }

bool IpAddress::IsLinkLocal() const {
  return is_v4() ? bytes_[0] == 169 && bytes_[1] == 254 : bytes_[0] == 0xfe && (bytes_[1] & 0xc0) == 0x80;
}

bool IpAddress::IsMulticast() const { return is_v4() ? (bytes_[0] & 0xf0) == 0xe0 : bytes_[0] == 0xff; }

IpAddress IpAddress::Plus(int64_t by) const {
  IpAddress out = *this;
  int64_t carry = by;
  for (int i = size_ - 1; i >= 0 && carry != 0; --i) {
    int64_t sum = out.bytes_[i] + (carry & 0xff);
    out.bytes_[i] = static_cast<uint8_t>(sum);
    carry = (carry >> 8) + (sum >> 8);  // arithmetic shift: borrows travel as -1
  }
  return out;
}

std::string IpAddress::ToString() const {
  char buffer[INET6_ADDRSTRLEN];
  inet_ntop(is_v4() ? AF_INET : AF_INET6, bytes_.data(), buffer, sizeof buffer);
  return buffer;
}

Result<IpPrefix> IpPrefix::Parse(std::string_view text) {
  auto slash = text.find('/');
  auto bad = [&] { return Error(Code::kInvalid, "invalid CIDR address: " + std::string(text)); };
  if (slash == std::string_view::npos) return bad();
  Result<IpAddress> address = IpAddress::Parse(text.substr(0, slash));
  std::string_view digits = text.substr(slash + 1);
  int length = -1;
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), length);
  if (!address || error != std::errc() || end != digits.data() + digits.size() || digits[0] == '-' ||
      (digits.size() > 1 && digits[0] == '0') || length > address->bits()) {
    return bad();
  }
  return IpPrefix(*address, length);
}

IpAddress IpPrefix::Network() const {
  std::string bytes(address_.bytes());
  for (int bit = length_; bit < address_.bits(); ++bit) {
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] & ~(0x80 >> (bit % 8)));
  }
  return IpAddress::FromBytes(bytes);
}

IpAddress IpPrefix::Last() const {
  std::string bytes(address_.bytes());
  for (int bit = length_; bit < address_.bits(); ++bit) {
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] | (0x80 >> (bit % 8)));
  }
  return IpAddress::FromBytes(bytes);
}

bool IpPrefix::Contains(const IpAddress& address) const {
  return address.is_v4() == is_v4() && IpPrefix(address, length_).Network() == Network();
}

bool IpPrefix::Overlaps(const IpPrefix& other) const {
  return Contains(other.address_) || other.Contains(address_);
}

std::string IpPrefix::ToString() const { return address_.ToString() + "/" + std::to_string(length_); }

}  // namespace keelson
