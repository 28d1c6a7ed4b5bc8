#include "cni/policy/blocks.h"

#include <algorithm>

namespace keelson::cni::policy {

std::vector<IpRange> AddressesOf(const Block& block) {
  std::vector<IpPrefix> holes;
  for (const IpPrefix& except : block.except) {
    if (except.is_v4() == block.cidr.is_v4() && except.Overlaps(block.cidr)) holes.push_back(except.Masked());
  }
  std::sort(holes.begin(), holes.end());
  std::vector<IpRange> out;
  IpAddress next = block.cidr.Network();
  const IpAddress last = block.cidr.Last();
  for (const IpPrefix& hole : holes) {
    if (hole.Last() < next) continue;  // inside of the hole before
    if (hole.Network() > next) out.push_back({next, hole.Network().Plus(-1)});
    if (hole.Last() >= last) return out;
    next = hole.Last().Plus(1);
  }
  out.push_back({next, last});
  return out;
}

bool Contains(const Block& block, const IpAddress& address) {
  return block.cidr.Contains(address) &&
         std::none_of(block.except.begin(), block.except.end(),
                      [&](const IpPrefix& except) { return except.Contains(address); });
}

std::vector<IpRange> Merged(std::vector<IpRange> ranges) {
  std::sort(ranges.begin(), ranges.end(),
            [](const IpRange& a, const IpRange& b) { return a.first < b.first; });
  std::vector<IpRange> out;
  for (const IpRange& range : ranges) {
    if (!out.empty() && range.first <= out.back().last) {
      out.back().last = std::max(out.back().last, range.last);
    } else {
      out.push_back(range);
    }
  }
  return out;
}

std::vector<PortRange> Merged(std::vector<PortRange> ranges) {
  std::sort(ranges.begin(), ranges.end());
  std::vector<PortRange> out;
  for (const PortRange& range : ranges) {
    if (!out.empty() && out.back().protocol == range.protocol && range.first <= out.back().last + 1) {
      out.back().last = std::max(out.back().last, range.last);
    } else {
      out.push_back(range);
    }
  }
  return out;
}

}  // namespace keelson::cni::policy
