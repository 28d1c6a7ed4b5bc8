// What the API says about one Service, as far as the path of packets depends on it. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lib/api/types.h"
#include "lib/base/ip.h"

namespace keelson::ctl {

struct Endpoint {
  IpAddress ip;
  uint16_t port = 0;
  std::string pod;   // namespace/name; empty: no pod
  std::string node;  // may be empty
  bool ready = false, serving = false, terminating = false;
  bool hinted = false;  // has topology hints: each proxy decides whether to follow them
};

// An address that the Service is reached at.
struct Frontend {
  enum Kind { kClusterIp, kNodePort, kExternalIp, kLoadBalancer } kind = kClusterIp;
  IpAddress ip;
  uint16_t port = 0;
};
std::string_view KindName(Frontend::Kind kind);  // "clusterIP", ...

struct PortView {
  std::string name;      // may be empty
  std::string protocol;  // "TCP"
  uint16_t port = 0;
  std::vector<Frontend> frontends;
  std::vector<Endpoint> endpoints;  // of both families

  uint8_t protocol_number() const;  // IPPROTO_*
};

struct ServiceView {
  std::string name;  // namespace/name
  std::string type;
  bool headless = false, has_selector = false;
  std::string external_name;
  bool internal_local = false, external_local = false;  // traffic policies
  bool session_affinity = false;                        // ClientIP
  std::vector<IpPrefix> source_ranges;
  std::vector<PortView> ports;
};

// `slices`: the EndpointSlices of the Service. `node_ips`: where NodePorts answer.
ServiceView MakeServiceView(const corev1::Service& service,
                            const std::vector<discoveryv1::EndpointSlice>& slices,
                            const std::vector<IpAddress>& node_ips);

}  // namespace keelson::ctl
