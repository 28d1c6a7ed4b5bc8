// Tracks changes of Services and EndpointSlices, and reduces them to what a dataplane needs: the parts of
// upstream's ServiceChangeTracker and EndpointsChangeTracker in one. Pure: objects in, values out. No API
// object is kept, so that memory per Service and endpoint is small. Not thread safe.
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

struct HealthCheckNodePort {
  uint16_t port;       // spec.healthCheckNodePort
  size_t local_ready;  // ready endpoints on this node
};

class ServiceChangeTracker {
 public:
  // `external_ips`: whether Services are reached by spec.externalIPs.
  explicit ServiceChangeTracker(NodeTopology topology, bool external_ips = true)
      : topology_(std::move(topology)), external_ips_(external_ips) {}
  // A topology other than the present one marks all Services as changed.
  void SetNodeTopology(NodeTopology topology);

  // Takes over an object; null: it was deleted. `key`: namespace/name. False: nothing has changed for a
  // dataplane.
  bool UpdateService(const std::string& key, const api::core::v1::Service* service);
  bool UpdateSlice(const std::string& key, const api::discovery::v1::EndpointSlice* slice);

  void MarkAllChanged();
  // Keys of Services that have changed since the last call.
  std::set<std::string> TakeChanged();
  // The ports of a Service in one address family, with the endpoints that traffic may go to now.
  std::vector<ResolvedPort> Resolve(const std::string& service_key, bool v4) const;
  std::vector<std::string> Keys() const;  // of all Services
  // By key, of Services with a healthCheckNodePort.
  std::map<std::string, HealthCheckNodePort> HealthCheckNodePorts() const;

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

  NodeTopology topology_;
  const bool external_ips_;
  std::unordered_map<std::string, Service> services_;
  std::set<std::string> health_checked_;  // keys of Services with a healthCheckNodePort
  std::unordered_map<std::string, std::map<std::string, Slice>> slices_;  // service key -> slice key
  std::unordered_map<std::string, std::string> service_of_slice_;         // slice key -> service key
  std::set<std::string> changed_;
};

}  // namespace keelson::proxy
