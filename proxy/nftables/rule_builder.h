// Private to proxy/nftables: the common part of the rules of both families.
#pragma once

#include <string>
#include <vector>

#include "proxy/nftables/chains.h"

namespace keelson::proxy::nftables {

using nft::Field;
using nft::Rule;

inline const std::string kLocalType = nft::Key().Mark(2).bytes();  // RTN_LOCAL

// Builds rules of one family: registers of an address, and names of fields.
class Builder {
 public:
  explicit Builder(const Options& options) : options_(options), width_(options.v4 ? 1 : 4) {}

  Field Source() const { return options_.v4 ? Field::kIpSaddr : Field::kIp6Saddr; }
  Field Destination() const { return options_.v4 ? Field::kIpDaddr : Field::kIp6Daddr; }
  int width() const { return width_; }

  // Loads the destination key from register `at` on; returns the register behind it.
  int LoadVip(Rule& rule, int at) const {
    rule.Load(at, Destination())
        .Load(at + width_, Field::kL4Proto)
        .Load(at + width_ + 1, Field::kDestinationPort);
    return at + width_ + 2;
  }
  int LoadNodePort(Rule& rule, int at) const {
    rule.Load(at, Field::kL4Proto).Load(at + 1, Field::kDestinationPort);
    return at + 2;
  }
  // The start of one rule for each way to recognise a pod's packet.
  std::vector<Rule> FromPods(const std::string& chain) const {
    std::vector<Rule> out;
    for (const IpPrefix& cidr : options_.pod_cidrs) SourceInside(out.emplace_back(chain), cidr, true);
    if (std::string name = PodInterface(); !name.empty()) {
      out.emplace_back(chain).Load(0, Field::kIifName).Equal(0, name);
    }
    return out;
  }
  // The start of a rule for packets of no pod.
  Rule NotFromPods(const std::string& chain) const {
    Rule rule(chain);
    for (const IpPrefix& cidr : options_.pod_cidrs) SourceInside(rule, cidr, false);
    if (std::string name = PodInterface(); !name.empty()) rule.Load(0, Field::kIifName).NotEqual(0, name);
    return rule;
  }
  void SourceInside(Rule& rule, const IpPrefix& cidr, bool inside) const {
    Inside(rule, Source(), cidr, inside);
  }
  void Inside(Rule& rule, Field field, const IpPrefix& cidr, bool inside) const {
    std::string zero(cidr.address().bytes().size(), '\0');
    rule.Load(0, field).Mask(0, MaskBytes(cidr), zero);
    inside ? rule.Equal(0, std::string(cidr.Network().bytes()))
           : rule.NotEqual(0, std::string(cidr.Network().bytes()));
  }
  std::string Name(SetId id) const { return SetOf(id, options_.v4).name; }

 private:
  static std::string MaskBytes(const IpPrefix& prefix) {
    std::string ones(prefix.address().bytes().size(), '\xff');
    return std::string(IpPrefix(IpAddress::FromBytes(ones), prefix.length()).Network().bytes());
  }
  // The comparison of a whole name includes its padding, that of a prefix does not.
  std::string PodInterface() const {
    if (!options_.pod_bridge.empty()) return nft::Key().Ifname(options_.pod_bridge).bytes();
    return options_.pod_interface_prefix;
  }

  const Options& options_;
  int width_;
};

}  // namespace keelson::proxy::nftables
