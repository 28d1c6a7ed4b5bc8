#include "lib/base/ip_range.h"

#include <algorithm>

namespace keelson {

Result<IpRange> IpRange::Parse(std::string_view text) {
  const Error wrong(Code::kInvalid, "invalid address range \"" + std::string(text) + "\"");
  if (const size_t dash = text.find('-'); dash != std::string_view::npos) {
    auto first = IpAddress::Parse(text.substr(0, dash)), last = IpAddress::Parse(text.substr(dash + 1));
    if (!first || !last || first->is_v4() != last->is_v4() || *last < *first) return wrong;
    return IpRange{*first, *last};
  }
  if (text.find('/') == std::string_view::npos) {
    auto one = IpAddress::Parse(text);
    if (!one) return wrong;
    return IpRange{*one, *one};
  }
  auto prefix = IpPrefix::Parse(text);
  if (!prefix) return wrong;
  IpRange out{prefix->Network(), prefix->Last()};
  if (prefix->is_v4() && prefix->length() < 31) out = {out.first.Plus(1), out.last.Plus(-1)};
  return out;
}

bool IpRange::Contains(const IpAddress& address) const {
  return address.is_v4() == first.is_v4() && first <= address && address <= last;
}

Result<AddressPool> AddressPool::Parse(const std::vector<std::string>& ranges) {
  AddressPool out;
  for (const std::string& text : ranges) {
    KEELSON_ASSIGN_OR_RETURN(IpRange range, IpRange::Parse(text));
    for (const IpRange& other : out.ranges_) {
      if (other.Contains(range.first) || range.Contains(other.first)) {
        return Error(Code::kInvalid, "address range \"" + text + "\" overlaps another");
      }
    }
    out.ranges_.push_back(range);
  }
  return out;
}

bool AddressPool::Has(bool v4) const {
  return std::any_of(ranges_.begin(), ranges_.end(),
                     [&](const IpRange& range) { return range.first.is_v4() == v4; });
}

bool AddressPool::Contains(const IpAddress& address) const {
  return std::any_of(ranges_.begin(), ranges_.end(),
                     [&](const IpRange& range) { return range.Contains(address); });
}

std::optional<IpAddress> AddressPool::FirstFree(bool v4,
                                                const std::function<bool(const IpAddress&)>& taken) const {
  for (const IpRange& range : ranges_) {
    if (range.first.is_v4() != v4) continue;
    for (IpAddress at = range.first;; at = at.Plus(1)) {
      if (!taken(at)) return at;
      if (at == range.last) break;
    }
  }
  return std::nullopt;
}

}  // namespace keelson
