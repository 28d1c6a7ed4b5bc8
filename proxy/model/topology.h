// Selects the endpoints of a Service port that this node uses, by readiness, termination, traffic policies
// and topology hints (KEP-1669, KEP-2433, KEP-3015). Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "proxy/model/service_port.h"

namespace keelson::proxy {

// This node's name and zone.
struct NodeTopology {
  std::string name, zone;
  bool operator==(const NodeTopology&) const = default;
};

// An endpoint of an EndpointSlice. Endpoints of publishNotReadyAddresses Services are ready in
// EndpointSlices.
struct Endpoint {
  IpAddress ip;
  bool ready = false, serving = false, terminating = false, local = false;
  std::vector<std::string> zone_hints, node_hints;
  auto operator<=>(const Endpoint&) const = default;
};

struct EndpointPort {
  const Endpoint* endpoint;
  uint16_t port;
};

// Fills the endpoint lists of `out`, by the policies of out.service. `here`: this node.
void CategorizeEndpoints(const std::vector<EndpointPort>& endpoints, const NodeTopology& here,
                         ResolvedPort& out);

}  // namespace keelson::proxy
