// The entries that one Service has in the maps of mode ebpf (lib/dataplane/ebpf_maps.h). Pure.
//
//   services       Service address -> verdicts for sockets, number of endpoints
//   outside        Service address -> how external traffic is served: NodePorts, external and load balancer addresses
//   endpoints      Service address . slot -> endpoint; those of policy Local from KP_FIRST_LOCAL_SLOT on
//   members        Service address . endpoint: with session affinity, of UDP, and in `outside`
//   maglev         Service address . chunk -> slots by hash, of `outside`
//   source_ranges  Service address . range of clients that are let in
//
// The rules serve the rest: external traffic that is refused or dropped, pods that have to be masqueraded,
// and pods that connect to an address with source ranges.
#pragma once

#include <string>
#include <vector>

#include "lib/dataplane/addresses.h"
#include "proxy/model/service_port.h"
#include "proxy/nftables/endpoint_slots.h"

namespace keelson::proxy::ebpf {

// The maps that a Plan fills. Entries are written in this order and removed in the opposite one, so that a
// program that finds a Service finds its endpoints.
enum MapId {
  kEndpoints,
  kMembers,
  kMaglev,
  kSourceRanges,
  kPodCidrs,
  kNodePortIps,
  kServices,
  kExternalServices,
  kMapCount,
};
// The map's name in ebpf_maps.h.
const char* MapName(MapId map);

struct MapEntry {
  MapId map;
  std::string key, value;
};

struct Options {
  bool v4 = true;
  bool masquerade_all = false;
  bool detects_pods = true;              // nftables::Options::DetectsPods() of the rules below
  std::vector<IpPrefix> pod_cidrs = {};  // of this family; their traffic is not external
};

using nftables::EndpointSlots;
using nftables::EndpointSlotsByPort;

// All entries of a Service. `slots`: those of the last call, replaced by those of this one. An endpoint that
// stays keeps its slot if it can.
std::vector<MapEntry> ContributionOf(const std::vector<ResolvedPort>& ports, const Options& options,
                                     EndpointSlotsByPort& slots);

// Entries of kNodePortIps for those of `ips` that are of the family.
std::vector<MapEntry> NodePortEntries(const std::vector<IpAddress>& ips, bool v4);

// Entries of kPodCidrs.
std::vector<MapEntry> PodEntries(const std::vector<IpPrefix>& cidrs);

// Bytes of keys and values.
std::string ServiceKeyBytes(const dataplane::ServiceAddress& service);
std::string EndpointBytes(const dataplane::EndpointAddress& endpoint);

}  // namespace keelson::proxy::ebpf
