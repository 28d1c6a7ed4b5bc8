// Port mappings in nftables (no I/O). `table inet keelson-portmap`:
//
//   map addressed-ports4 { ipv4_addr . inet_proto . inet_service : ipv4_addr . inet_service }  hostIP given
//   map ports4           { inet_proto . inet_service : ipv4_addr . inet_service }              any address
//   set near             { ifname }           the host's interfaces towards containers
//   chain hostports      a packet that is in a map: jump mark; dnat to the map's value
//   chain mark           from `near` or 127.0.0.0/8: set the mark bit
//   chain prerouting, output   (nat, -100)  destination is an address of this host: jump hostports
//   chain postrouting          (nat, 100)   marked and translated: masquerade
//
// and the same for IPv6. The number of lookups per packet does not depend on the number of mapped ports.
// Networks with other conditions, mark or snat settings have their own maps and chains, whose names have a
// suffix. An element's comment names its owner (cni/lib/label.h).
//
// Why masquerade: without it, a container that uses its own or a neighbour's host port would get the reply
// straight from the neighbour's address, past the translation; and nothing can reply to 127.0.0.1.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "cni/portmap/config.h"
#include "lib/nft/transaction.h"

namespace keelson::cni {

nft::Table PortmapTable();
// The chain with the configuration's rules. If it exists, so does everything that it needs.
std::string HostPortsChain(const PortmapConfig& config);
// Makes the table, maps and chains. Applying fails with kAlreadyExists if HostPortsChain() exists.
void MakeChains(nft::Transaction& t, const PortmapConfig& config);
// Adds `ifname`, the host's interface towards the container, to the set `near`.
void AddNear(nft::Transaction& t, const std::string& ifname);

struct PlannedElement {
  nft::Set set;
  nft::Element element;
};
std::vector<PlannedElement> PlanElements(const PortmapConfig& config, const ContainerAddresses& addresses,
                                         const std::string& label);

// The reverse of PlanElements(): the mapping in a map's element.
struct MappedPort {
  uint8_t protocol;
  uint16_t host_port, container_port;
  IpAddress container;
};
std::optional<MappedPort> ParseElement(const nft::Set& set, const nft::Element& element);

}  // namespace keelson::cni
