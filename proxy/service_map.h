// What the API says about Services, reduced to what a dataplane needs. Pure: objects in, values out.
//
// Changes are told by UpdateService and UpdateSlice; Resolve() gives a Service's ports of one address family
// with the endpoints that traffic may go to now. Memory per Service and endpoint is small: nothing of the
// API objects is kept. Not thread safe.
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lib/base/ip.h"

namespace keelson::api::core::v1 {
class Service;
}
namespace keelson::api::discovery::v1 {
class EndpointSlice;
}

namespace keelson::proxy {

enum Protocol : uint8_t { kTcp = 6, kUdp = 17, kSctp = 132 };

struct Backend {
  IpAddress ip;
  uint16_t port = 0;
  bool local = false;  // on this node
  auto operator<=>(const Backend&) const = default;
};

// One port of a Service in one address family.
struct ServicePort {
  std::string name;  // namespace/name:port
  uint8_t protocol = kTcp;
  IpAddress cluster_ip;
  uint16_t port = 0;
  uint16_t node_port = 0;               // 0: none
  std::vector<IpAddress> external_ips;  // spec.externalIPs and load balancer addresses
  std::vector<IpAddress> limited_ips;   // of these, the ones that `source_ranges` guard
  std::vector<IpPrefix> source_ranges;
  bool internal_local = false;       // internalTrafficPolicy: Local
  bool external_local = false;       // externalTrafficPolicy: Local
  std::chrono::seconds affinity{0};  // sessionAffinity: ClientIP; 0: none
  bool operator==(const ServicePort&) const = default;
};

struct ResolvedPort {
  ServicePort service;
  // Ready ones; if there is none, those that are terminating and still serving. Sorted, no duplicates.
  std::vector<Backend> cluster, local;
};

// Where this node is.
struct NodePlace {
  std::string name, zone;
  bool operator==(const NodePlace&) const = default;
};

struct HealthCheck {
  uint16_t port;       // spec.healthCheckNodePort
  size_t local_ready;  // endpoints on this node that are ready
};

class ServiceMap {
 public:
  explicit ServiceMap(NodePlace place) : place_(std::move(place)) {}
  void SetPlace(NodePlace place);  // another one changes every Service

  // `key` is namespace/name; null: deleted. False when nothing of interest has changed.
  bool UpdateService(const std::string& key, const api::core::v1::Service* service);
  bool UpdateSlice(const std::string& key, const api::discovery::v1::EndpointSlice* slice);

  void MarkAllChanged();
  // Services changed since the last call.
  std::set<std::string> TakeChanged();
  std::vector<ResolvedPort> Resolve(const std::string& service_key, bool v4) const;
  std::vector<std::string> Keys() const;
  // By service key, of Services that have such a port.
  std::map<std::string, HealthCheck> HealthChecks() const;

 private:
  struct Service {
    std::vector<ServicePort> ports_v4, ports_v6;
    std::vector<std::string> port_names;  // of each port, as EndpointSlices refer to them
    uint16_t health_check_port = 0;
    bool operator==(const Service&) const = default;
  };
  struct SliceEndpoint {
    IpAddress ip;
    bool ready, serving, terminating, local;
    std::vector<std::string> zone_hints, node_hints;
    auto operator<=>(const SliceEndpoint&) const = default;
  };
  struct SlicePort {
    std::string name;
    uint8_t protocol;
    uint16_t port;
    auto operator<=>(const SlicePort&) const = default;
  };
  struct Slice {
    std::vector<SlicePort> ports;
    std::vector<SliceEndpoint> endpoints;
    bool operator==(const Slice&) const = default;
  };

  static Service Project(const std::string& key, const api::core::v1::Service& service);
  Slice Project(const api::discovery::v1::EndpointSlice& slice) const;
  void Select(const std::string& service_key, const std::string& port_name, ResolvedPort& out) const;

  NodePlace place_;
  std::unordered_map<std::string, Service> services_;
  std::unordered_map<std::string, std::map<std::string, Slice>> slices_;  // service key -> slice key
  std::unordered_map<std::string, std::string> service_of_slice_;         // slice key -> service key
  std::set<std::string> changed_;
};

}  // namespace keelson::proxy
