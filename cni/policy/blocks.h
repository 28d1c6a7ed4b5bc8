// Ranges of addresses and ports that do not overlap: nftables takes no others.
#pragma once

#include <cstdint>
#include <vector>

#include "cni/policy/objects.h"
#include "lib/base/ip_range.h"

namespace keelson::cni::policy {

// The addresses of `cidr` without those of `except`, in order. Exceptions outside of `cidr`, or of the other
// family, take nothing away.
std::vector<IpRange> AddressesOf(const Block& block);

bool Contains(const Block& block, const IpAddress& address);

// The same addresses without overlaps, sorted. All are of one family.
std::vector<IpRange> Merged(std::vector<IpRange> ranges);

// Ports `first` to `last` of a protocol.
struct PortRange {
  uint8_t protocol = 6;
  uint16_t first = 0, last = 65535;
  auto operator<=>(const PortRange&) const = default;
};
// The same ports without overlaps, sorted; adjacent ranges are joined.
std::vector<PortRange> Merged(std::vector<PortRange> ranges);

}  // namespace keelson::cni::policy
