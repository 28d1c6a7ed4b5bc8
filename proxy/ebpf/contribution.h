// What one Service puts into the maps of mode ebpf (bpf/maps.h). Pure.
//
//   services       Vip -> how many endpoints, and what pods and the node get to hear at their sockets
//   outside        Vip -> how packets from outside are served, of NodePorts, external and load balancer
//   addresses endpoints      Vip . slot -> endpoint; those on this node, for policy Local, from
//   KP_LOCAL_SLOTS on members        Vip . endpoint, of Services with affinity or of UDP, and of `outside`
//   maglev         Vip . row -> slots by hash, of `outside`
//   source_ranges  Vip . range of addresses that is let in from outside
//
// What is refused or dropped from outside, pods that would have to be masqueraded, and those that come to an
// address with source ranges are left to the rules.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "lib/dataplane/addresses.h"
#include "proxy/model/service_port.h"

namespace keelson::proxy::ebpf {

// In the order in which entries are written, and the other way round removed: a program that finds a Service
// finds its endpoints.
enum MapId {
  kEndpoints,
  kMembers,
  kMaglev,
  kSourceRanges,
  kPods,
  kNodePortIps,
  kServices,
  kOutside,
  kMapCount,
};
const char* MapName(MapId map);

struct Entry {
  MapId map;
  std::string key, value;
};

struct Options {
  bool v4 = true;
  bool masquerade_all = false;
  bool detects_pods = true;  // as nftables::Options::DetectsPods(), for what both have to agree upon
  std::vector<IpPrefix> pod_cidrs = {};  // whose packets are none from outside; of this family
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

// Entries of `cidrs`.
std::vector<Entry> PodEntries(const std::vector<IpPrefix>& cidrs);

// As keys and values of maps.
std::string ServiceKeyBytes(const dataplane::ServiceAddress& service);
std::string EndpointBytes(const dataplane::EndpointAddress& endpoint);

}  // namespace keelson::proxy::ebpf
