#include "lib/k8s/validation/addresses.h"

#include <algorithm>

#include <fmt/format.h>

#include "lib/base/ip.h"

namespace keelson::k8s {

namespace {

bool Contains(const Strings& list, const std::string& value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

bool IsIpv4InIpv6(const std::string& value) {
  if (value.find(':') == std::string::npos) return false;
  Result<IpAddress> ip = IpAddress::Parse(value);
  if (!ip) return false;
  if (ip->is_v4()) return true;
  const std::string_view bytes = ip->bytes();
  return bytes.substr(0, 10) == std::string(10, '\0') && bytes.substr(10, 2) == "\xff\xff";
}

// 010.0.0.1: some parsers read this as octal.
bool HasLeadingZero(std::string_view ipv4) {
  for (size_t at = 0;; ++at) {
    if (at + 1 < ipv4.size() && ipv4[at] == '0' && ipv4[at + 1] >= '0' && ipv4[at + 1] <= '9') return true;
    at = ipv4.find('.', at);
    if (at == std::string_view::npos) return false;
  }
}

}  // namespace

void CheckStrictIp(const std::string& value, const Strings& old, const Path& path, FieldErrors& errors) {
  if (Contains(old, value)) return;
  const size_t before = errors.size();
  CheckIpAddress(value, path, errors);
  if (errors.size() != before) return;
  if (value.find(':') == std::string::npos && HasLeadingZero(value)) {
    errors.push_back(Invalid(path, value, "must not have leading 0s"));
  } else if (IsIpv4InIpv6(value)) {
    errors.push_back(Invalid(path, value, "must not be an IPv4-mapped IPv6 address"));
  }
}

void CheckStrictCidr(const std::string& value, const Strings& old, const Path& path, FieldErrors& errors) {
  if (Contains(old, value)) return;
  if (!IsCidr(value)) {
    errors.push_back(Invalid(path, value, "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"));
    return;
  }
  const size_t slash = value.find('/');
  const std::string address = value.substr(0, slash);
  const std::string_view length = std::string_view(value).substr(slash + 1);
  if (IsIpv4InIpv6(address)) {
    errors.push_back(Invalid(path, value, "must not have an IPv4-mapped IPv6 address"));
    return;
  }
  const bool zero = length.size() > 1 && length.front() == '0';
  if (zero || (address.find(':') == std::string::npos && HasLeadingZero(address))) {
    errors.push_back(Invalid(path, value, "must not have leading 0s in IP or prefix length"));
    return;
  }
  Result<IpPrefix> prefix = IpPrefix::Parse(value);
  if (prefix && prefix->Network() != prefix->address()) {
    errors.push_back(Invalid(path, value, "must not have bits set beyond the prefix length"));
  }
}

void CheckNonSpecialIp(const std::string& text, const Path& path, FieldErrors& errors) {
  Result<IpAddress> ip = IpAddress::Parse(text);
  if (!ip) return;  // other rules check the syntax
  if (ip->IsUnspecified()) {
    errors.push_back(Invalid(path, text, fmt::format("may not be unspecified ({})", text)));
  }
  if (ip->IsLoopback()) {
    errors.push_back(Invalid(path, text, "may not be in the loopback range (127.0.0.0/8, ::1/128)"));
  }
  if (ip->IsLinkLocal()) {
    errors.push_back(Invalid(path, text, "may not be in the link-local range (169.254.0.0/16, fe80::/10)"));
  }
  const std::string_view bytes = ip->bytes();
  const bool local_multicast = ip->is_v4()
                                   ? bytes.substr(0, 3) == std::string_view("\xe0\0\0", 3)
                                   : bytes[0] == '\xff' && (static_cast<unsigned char>(bytes[1]) & 0x0f) == 2;
  if (local_multicast) {
    errors.push_back(
        Invalid(path, text, "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"));
  }
}

std::string PrintList(const Strings& strings) { return strings.empty() ? "null" : PrintStrings(strings); }

}  // namespace keelson::k8s
