// Simulates load balancing of external traffic in mode ebpf: decides about the first packet of a connection as
// the filter at the device does (proxy/ebpf/bpf/external_traffic.h), from the maps that it reads. Pure.
#pragma once

#include <string>
#include <vector>

#include "ctl/ebpf/ebpf_maps.h"
#include "ctl/problem.h"
#include "lib/netlink/conntrack.h"

namespace keelson::ctl {

struct ExternalPacket {
  std::string link;  // by which it comes in
  IpAddress client, to;
  uint8_t protocol = 6;
  uint16_t port = 0;
};

struct EndpointChoice {
  dataplane::EndpointAddress endpoint;
  int percent = 0;  // of the connections
};

struct FilterOutcome {
  bool served = false;                  // false: the packet passes unchanged
  std::vector<EndpointChoice> choices;  // any one of them
  bool masquerade = false;              // the packet gets the masquerade mark
  bool misses = false;                  // the lookup table has a slot without an endpoint
  std::string why;
};

// Decides about a packet. `why` says in words what has decided.
FilterOutcome RunIngressFilter(const EbpfMaps& maps, const ExternalPacket& packet);

// The source address of packets that come in by `in` and are forwarded by `out` past the rules; nullopt: the
// rules forward them.
std::optional<IpAddress> DirectSource(const ExternalMaps& maps, const std::string& in,
                                      const std::string& out);

// Open connections of `maps.external.connections`, in the form of connection tracking: the replier is the
// endpoint.
std::vector<netlink::Flow> NatFlows(const EbpfMaps& maps, uint8_t protocol);

// What is wrong with the maps, devices and filters for external traffic.
std::vector<Problem> ExternalFaults(const std::vector<EbpfMaps>& families);

}  // namespace keelson::ctl
