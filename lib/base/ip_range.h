// Sets of IP addresses as people write them: "192.0.2.10-192.0.2.20", "192.0.2.0/28", "fd00::10".
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/ip.h"

namespace keelson {

// A range of addresses; `first` and `last` belong to it.
struct IpRange {
  IpAddress first, last;
  // Parses a range, a prefix or a single address. An IPv4 prefix shorter than /31 does not include its
  // network and broadcast addresses. kInvalid says what is wrong.
  static Result<IpRange> Parse(std::string_view text);
  bool Contains(const IpAddress& address) const;
};

// Ranges of addresses to allocate from. Immutable; the caller keeps track of which addresses are taken.
class AddressPool {
 public:
  // kInvalid: a range cannot be parsed, or overlaps another.
  static Result<AddressPool> Parse(const std::vector<std::string>& ranges);

  bool empty() const { return ranges_.empty(); }
  bool Has(bool v4) const;
  bool Contains(const IpAddress& address) const;
  // The first address of the family, in the order of the ranges, for which `taken` is false. nullopt: none
  // is free.
  std::optional<IpAddress> FirstFree(bool v4, const std::function<bool(const IpAddress&)>& taken) const;

 private:
  std::vector<IpRange> ranges_;
};

}  // namespace keelson
