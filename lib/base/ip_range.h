// Sets of IP addresses as people write them: "192.0.2.10-192.0.2.20", "192.0.2.0/28", "fd00::10".
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/ip.h"

namespace keelson {

// First and last address, both of it.
struct IpRange {
  IpAddress first, last;
  // A range, a prefix or one address. Of an IPv4 prefix shorter than /31 the network's own address and the
  // broadcast address are left out. kInvalid says what is wrong.
  static Result<IpRange> Parse(std::string_view text);
  bool Contains(const IpAddress& address) const;
};

class AddressPool {
 public:
  // kInvalid: a range cannot be read, or overlaps another.
  static Result<AddressPool> Parse(const std::vector<std::string>& ranges);

  bool empty() const { return ranges_.empty(); }
  bool Has(bool v4) const;
  bool Contains(const IpAddress& address) const;
  // The first one of the family, in the order of the ranges, that `taken` does not know.
  std::optional<IpAddress> FirstFree(bool v4, const std::function<bool(const IpAddress&)>& taken) const;

 private:
  std::vector<IpRange> ranges_;
};

}  // namespace keelson
