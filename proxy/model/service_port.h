// Service ports and the endpoints (backends) behind them: what the model tells dataplanes.
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "lib/base/ip.h"

namespace keelson::proxy {

enum Protocol : uint8_t { kTcp = 6, kUdp = 17, kSctp = 132 };

// An endpoint's address and port.
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
  uint16_t node_port = 0;                    // 0: none
  std::vector<IpAddress> external_ips;       // spec.externalIPs
  std::vector<IpAddress> load_balancer_ips;  // ingress addresses with ipMode VIP
  std::vector<IpPrefix> source_ranges;       // spec.loadBalancerSourceRanges; empty: all clients. Disjoint.
  bool internal_local = false;               // internalTrafficPolicy: Local
  bool external_local = false;               // externalTrafficPolicy: Local
  std::chrono::seconds affinity{0};          // sessionAffinity: ClientIP; 0: none
  bool operator==(const ServicePort&) const = default;

  bool ExternallyAccessible() const {
    return node_port != 0 || !external_ips.empty() || !load_balancer_ips.empty();
  }
  // Also with external policy Local: pods and this node reach external addresses through all endpoints.
  bool UsesClusterEndpoints() const { return !internal_local || ExternallyAccessible(); }
  bool UsesLocalEndpoints() const { return internal_local || (external_local && ExternallyAccessible()); }
};

// A port with the endpoints that traffic may go to now. Lists are sorted, without duplicates.
struct ResolvedPort {
  ServicePort service;
  std::vector<Backend> cluster;  // for policy Cluster; empty if the port never uses it
  std::vector<Backend> local;    // for policy Local; empty if the port never uses it
  std::vector<Backend> serving;  // UDP only: all endpoints that still serve, regardless of policies
  bool has_endpoints = false;    // ready anywhere in the cluster, whatever the policies
};

}  // namespace keelson::proxy
