// What one Service puts into the maps of socket load balancing (bpf/maps.h). Pure.
//
//   services   Vip -> how many endpoints, and what pods and the node get to hear
//   endpoints  Vip . slot -> endpoint
//   members    Vip . endpoint, of Services with affinity and of UDP
//
// Who would have to be masqueraded, and who comes to an address with source ranges, is left to packets.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "proxy/model/service_port.h"

namespace keelson::proxy::ebpf {

// In the order in which entries are written, and the other way round removed: a program that finds a Service
// finds its endpoints.
enum MapId { kEndpoints, kMembers, kNodePortIps, kServices, kMapCount };
const char* MapName(MapId map);

struct Entry {
  MapId map;
  std::string key, value;
};

struct Options {
  bool v4 = true;
  bool masquerade_all = false;
  bool detects_pods = true;  // as nftables::Options::DetectsPods(), for what both have to agree upon
};

// The endpoints of a Service port by slot, those of the cluster and those of this node.
struct Slots {
  std::vector<Backend> cluster, local;
};
using SlotsByPort = std::map<std::string, Slots>;

// `slots` are those of last time, and then of this time: what stays keeps its slot.
std::vector<Entry> ContributionOf(const std::vector<ResolvedPort>& ports, const Options& options,
                                  SlotsByPort& slots);

// Entries of `ips` of the family: where NodePorts answer.
std::vector<Entry> NodePortEntries(const std::vector<IpAddress>& ips, bool v4);

// As maps have them. Null address: a NodePort.
std::string VipKey(const IpAddress* ip, uint8_t protocol, uint16_t port);
std::string EndpointValue(const IpAddress& ip, uint16_t port);

}  // namespace keelson::proxy::ebpf
