// What the API says about Services, reduced to what a dataplane needs. Pure: objects in, values out.
//
// Changes are told by UpdateService and UpdateSlice; Resolve() gives a Service's ports of one address family
// with the endpoints that traffic may go to now. Memory per Service and endpoint is small: nothing of the
// API objects is kept. Not thread safe.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "proxy/model/service_port.h"
#include "proxy/model/topology.h"

namespace keelson::api::core::v1 {
class Service;
}
namespace keelson::api::discovery::v1 {
class EndpointSlice;
}

namespace keelson::proxy {

struct HealthCheck {
  uint16_t port;       // spec.healthCheckNodePort
  size_t local_ready;  // endpoints on this node that are ready
};

class ServiceMap {
 public:
  // `external_ips`: whether Services are reached by spec.externalIPs.
  explicit ServiceMap(NodePlace place, bool external_ips = true)
      : place_(std::move(place)), external_ips_(external_ips) {}
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
    uint16_t health_check_port = 0;
    bool operator==(const Service&) const = default;
  };
  struct SlicePort {
    std::string name;
    uint8_t protocol;
    uint16_t port;
    auto operator<=>(const SlicePort&) const = default;
  };
  struct Slice {
    std::vector<SlicePort> ports;
    std::vector<Endpoint> endpoints;
    bool operator==(const Slice&) const = default;
  };

  Service Project(const std::string& key, const api::core::v1::Service& service) const;
  Slice Project(const api::discovery::v1::EndpointSlice& slice) const;
  std::vector<EndpointPort> EndpointsOf(const std::string& service_key, const std::string& port_name,
                                        const ServicePort& port) const;

  NodePlace place_;
  const bool external_ips_;
  std::unordered_map<std::string, Service> services_;
  std::set<std::string> health_checked_;                                  // keys of those with such a port
  std::unordered_map<std::string, std::map<std::string, Slice>> slices_;  // service key -> slice key
  std::unordered_map<std::string, std::string> service_of_slice_;         // slice key -> service key
  std::set<std::string> changed_;
};

}  // namespace keelson::proxy
