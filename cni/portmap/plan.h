// What port mappings look like in nftables (no I/O). `table inet keelson-portmap`:
//
//   map addressed-ports4 { ipv4_addr . inet_proto . inet_service : ipv4_addr . inet_service }  hostIP given
//   map ports4           { inet_proto . inet_service : ipv4_addr . inet_service }              any address
//   set near             { ifname }           the host's interfaces towards containers
//   chain hostports      a packet that is in a map: jump mark; dnat to what the map says
//   chain mark           from `near` or 127.0.0.0/8: set the mark bit
//   chain prerouting, output   (nat, -100)  destination is an address of this host: jump hostports
//   chain postrouting          (nat, 100)   marked and translated: masquerade
//
// and the same for IPv6: a packet costs the same number of lookups however many ports are mapped. Networks
// with other conditions, mark or snat settings have maps and chains of their own, named by a suffix. An
// element's comment says whose it is (cni/lib/label.h).
//
// Why masquerade: a container that talks to its own or its neighbour's host port would get the answer
// straight from the neighbour's address, past the translation; and nobody answers to 127.0.0.1.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "cni/portmap/config.h"
#include "lib/nft/transaction.h"

namespace keelson::cni {

nft::Table PortmapTable();
// The chain that the configuration's rules are in; where it is, all that it needs is.
std::string HostPortsChain(const PortmapConfig& config);
// Makes the table, maps and chains. Fails with kAlreadyExists where HostPortsChain is.
void MakeChains(nft::Transaction& t, const PortmapConfig& config);
// `ifname`: the host's interface towards the container.
void AddNear(nft::Transaction& t, const std::string& ifname);

struct PlannedElement {
  nft::Set set;
  nft::Element element;
};
std::vector<PlannedElement> PlanElements(const PortmapConfig& config, const ContainerAddresses& addresses,
                                         const std::string& label);

// The other way: what a map's element says.
struct MappedPort {
  uint8_t protocol;
  uint16_t host_port, container_port;
  IpAddress container;
};
std::optional<MappedPort> ParseElement(const nft::Set& set, const nft::Element& element);

}  // namespace keelson::cni
