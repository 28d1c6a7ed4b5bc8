// Which of a Service port's endpoints this node uses: readiness, termination, traffic policies and topology
// hints (KEP-1669, KEP-2433, KEP-3015). Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "proxy/model/service_port.h"

namespace keelson::proxy {

// Where this node is.
struct NodePlace {
  std::string name, zone;
  bool operator==(const NodePlace&) const = default;
};

// An endpoint as EndpointSlices describe it. Endpoints of publishNotReadyAddresses Services are ready there.
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

// Fills all of `out` but the service, which it reads.
void Categorize(const std::vector<EndpointPort>& endpoints, const NodePlace& here, ResolvedPort& out);

}  // namespace keelson::proxy
