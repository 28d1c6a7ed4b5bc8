// Configuration of the portmap plugin; the fields are the CNI reference plugin's.
//
//   {"type": "portmap", "capabilities": {"portMappings": true}, "snat": true,
//    "runtimeConfig": {"portMappings": [{"hostPort": 8080, "containerPort": 80, "protocol": "tcp"}]}}
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cni/lib/plugin.h"

namespace keelson::cni {

struct Mapping {
  std::optional<IpAddress> host_ip;  // match packets to this address; 0.0.0.0 and :: match any of a family
  uint16_t host_port = 0, container_port = 0;
  uint8_t protocol = 0;  // IPPROTO_*
  bool AppliesTo(bool v4) const { return !host_ip || host_ip->is_v4() == v4; }
  bool HasAddress() const { return host_ip && !host_ip->IsUnspecified(); }
};

// A further condition for packets to be mapped, from conditionsV4 or conditionsV6.
struct Condition {
  enum class Subject { kSource, kDestination, kInterface };
  Subject subject;
  bool negated = false;
  IpPrefix prefix = {};        // for a source or destination
  std::string interface = {};  // the incoming interface
  std::string ToString() const;
};

struct PortmapConfig {
  std::vector<Mapping> mappings;
  bool snat = true;       // masquerade packets whose replies would go astray: hairpin and 127.0.0.1
  bool masq_all = false;  // masquerade all mapped packets
  int mark_bit = 13;      // bit in the packet mark that means "masquerade this"
  std::vector<Condition> conditions_v4, conditions_v6;
};

Outcome<PortmapConfig> ReadPortmapConfig(const Request& request);

// The container's addresses, one per family, from the previous plugins' result.
struct ContainerAddresses {
  std::optional<IpAddress> v4, v6;
};
ContainerAddresses FindAddresses(const AddResult& result, const std::string& ifname);

}  // namespace keelson::cni
